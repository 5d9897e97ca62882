import { DeleteQueue, type Outcomes, type PendingDelete } from "../delete-queue.ts";
import {
  outcomeUnknown,
  storeUnavailable,
  type DeleteCall,
  type PlantStore,
  type StoreConnections,
  type WaitingDeletions,
} from "../../service/index.ts";
import type { DurableStoreOptions, OnBatch } from "../durable-store-options.ts";
import { StoreOpenError } from "../store-open-error.ts";
import { StoreHealth, type StoreProblem } from "../store-health.ts";
import { checkDeletionsKept, deletionsKeptMsDefault } from "../retention.ts";
import { elapsedMsSince } from "../upkeep.ts";
import { Retention } from "./all-plants/retention.ts";
import { UnavailableWorkers } from "./delete/unavailable-workers.ts";
import { TableLocation } from "./table-location.ts";
import { type DeferredDelete, DeferredDeletes } from "./delete/deferred-deletes.ts";
import { problemOf } from "./delete/problem.ts";
import { BatchFailure, batchTimeoutMs, runBatch } from "./delete/run-batch.ts";
import { checkRequestedSettings } from "./schema/check-requested-settings.ts";
import { checkDatabase, checkRights } from "./schema/check-database.ts";
import type { SessionTimeouts } from "./server/connect.ts";
import { followServerUrl } from "./server/follow-server-url.ts";
import { NamedStatements } from "./server/named-statements.ts";
import { readServerUrl, type Server } from "./server/server-url.ts";
import { Session } from "./server/session.ts";

/** Options of {@link openPostgresStore}. */
export interface PostgresStoreOptions extends DurableStoreOptions {
  /** `postgres://user:password@host:port/database`, see {@link readServerUrl}. */
  readonly url: string;
  /** Returns the current URL, see {@link followServerUrl}. By default the URL does not change. */
  readonly currentUrl?: () => string;
}

// About 10 ms of work for the server.
const batchMax = 1_024;

/** The most deletions that wait for a batch: about a tenth of a second of work. Further callers get an error. */
export const waitingMax = 16_384;

/** How often the server is checked, in milliseconds: by a write if no deletion was committed meanwhile. */
export const watchIntervalMs = 5_000;

/** The timeouts of deletions. Batches hold their locks for a few milliseconds, and statements take as long. */
export const deleteTimeouts: SessionTimeouts = {
  lockTimeoutMs: 100,
  statementTimeoutMs: 5_000,
  responseTimeoutMs: 7_000,
};

/**
 * Opens a plant store in a PostgreSQL database, which any number of processes can share. The schema must exist.
 *
 * A batch that fails is attempted again as the fault table determines, for at most ten seconds after it was first
 * sent. If it still fails and no other batch has succeeded meanwhile, the store reports a `problem` and refuses
 * deletions until a check succeeds. The same happens immediately if the server refuses everything. If the server is
 * unavailable from the start, the store opens in this state.
 *
 * If a worker of Citus is unavailable, only the deletions on it fail; the store has no `problem`.
 *
 * @throws StoreOpenError naming the server, for a problem that will not resolve itself within seconds
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PlantStore> {
  checkDeletionsKept(options.deletionsKeptMs);
  const server =
    options.currentUrl === undefined ? readServerUrl(options.url) : followServerUrl(options.url, options.currentUrl);
  const location = new TableLocation();
  const session = new Session(server, deleteTimeouts, location.workers);
  session.deadlineMs = performance.now() + batchTimeoutMs;
  const problem = await location.check(session).then(() => undefined, problemOf);
  await session.close();
  if (problem?.mayBeBrief === false) throw new StoreOpenError(`cannot use ${server.name}: ${problem.text}`);
  return new PostgresStore(server, location, problem, options);
}

class PostgresStore implements PlantStore {
  readonly #server: Server;
  /** All sessions, as many as were ever in use at the same time: for batches, deferred deletions, and checks. */
  readonly #sessions: Session[] = [];
  /** The sessions that are not in use; the last one used is reused first. */
  readonly #idle: Session[] = [];
  readonly #location: TableLocation;
  /** The queues by the index of the worker; that at -1 is unused once the tables are distributed over workers. */
  readonly #queues = new Map<number, DeleteQueue>();
  #isClosed = false;
  readonly #onBatch: OnBatch | undefined;
  readonly #deferred = new DeferredDeletes({
    commit: (batch, deadlineMs) => this.#commit(batch, deadlineMs),
    workerOf: (id) => this.#location.placement.workerOf(id),
    batchMax,
    waitingMax,
  });
  readonly #health = new StoreHealth({
    findProblem: (hasCommitted, deadlineMs) => this.#findProblem(hasCommitted, deadlineMs),
    watchIntervalMs,
    graceMs: batchTimeoutMs,
  });
  readonly #retention: Retention;
  readonly #unavailableWorkers: UnavailableWorkers;
  readonly #names: NamedStatements;

  constructor(
    server: Server,
    location: TableLocation,
    problem: StoreProblem | undefined,
    { deletionsKeptMs = deletionsKeptMsDefault, onBatch, onUpkeep }: PostgresStoreOptions,
  ) {
    this.#server = server;
    this.#location = location;
    this.#onBatch = onBatch;
    if (problem !== undefined) this.#health.report(problem);
    this.#retention = new Retention(new Session(server, deleteTimeouts, location.workers), {
      keptMs: deletionsKeptMs,
      placementOn: (retentionSession) => location.placementOn(retentionSession),
      hasDeletedSince: (timeMs) => this.#health.hasCommittedSince(timeMs),
      onUpkeep,
    });
    this.#unavailableWorkers = new UnavailableWorkers(onUpkeep);
    const begunMs = performance.now();
    this.#names = new NamedStatements((refusal) =>
      onUpkeep?.({ kind: "prepared-statements-refused", lastedMs: elapsedMsSince(begunMs), problem: refusal }),
    );
  }

  get problem(): string | undefined {
    const problem = this.#health.problem;
    return problem && `${this.#server.name}: ${problem.text}`;
  }

  get waiting(): WaitingDeletions {
    const forBatch = [...this.#queues.values()].reduce((sum, { waiting }) => sum + waiting.forBatch, 0);
    const inUse = [...this.#queues].filter(([worker]) => worker >= 0 === this.#location.isDistributed);
    const forBatchMax = inUse.reduce((sum, [, { waiting }]) => sum + waiting.forBatchMax, 0);
    return { forBatch, forBatchMax: inUse.length === 0 ? waitingMax : forBatchMax, forLock: this.#deferred.waiting };
  }

  get connections(): StoreConnections {
    return { used: this.#sessions.length - this.#idle.length, idle: this.#idle.length };
  }

  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#health.problem !== undefined) return Promise.reject(storeUnavailable(this.problem));
    if (this.#isClosed) return Promise.reject(storeUnavailable());
    return this.#queueOf(id).delete(id, this.#location.placement.toRecordedCall(call, id));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    await this.#deferred.close();
    this.#health.report({ text: "the store is closed", isTemporary: false });
    await Promise.all([this.#retention.stop(), ...this.#sessions.map((session) => session.close())]);
  }

  async #commit(batch: readonly DeferredDelete[], deadlineMs: number): Promise<Outcomes> {
    // These deletions were queued before the server became unavailable.
    if (this.#health.problem !== undefined) throw storeUnavailable(this.problem);
    const begunMs = performance.now();
    const { placement } = this.#location;
    const [first] = batch;
    const worker = first === undefined ? 0 : placement.workerOf(first.id);
    // Retried only after the batch has succeeded: if it fails, these deletions fail with it.
    const deferred: DeferredDelete[] = [];
    try {
      const defer = (one: DeferredDelete): void => void deferred.push(one);
      // All deletions of a batch have the same token.
      const options = { defer, placement, isCareful: !this.#deferred.isEmpty, token: first?.token };
      const outcomes = await this.#withSession(deadlineMs, (session) => runBatch(session, batch, options));
      for (const one of deferred) this.#deferred.add(one, deadlineMs);
      // A batch that deletes nothing writes nothing, so it does not show that commits work.
      if (outcomes.includes(true)) this.#health.recordCommit();
      this.#unavailableWorkers.recordSuccess(worker);
      return outcomes;
    } catch (fault) {
      if (!(fault instanceof BatchFailure)) throw outcomeUnknown(fault);
      const mayBeOneWorker = placement.isDistributed && (fault.server === "unavailable" || fault.server === "busy");
      if (mayBeOneWorker) void this.#reportWorker(worker, fault, begunMs);
      else if (this.#isServerAtFault(fault, begunMs)) this.#health.report(problemOf(fault.fault));
      // For deletions in doubt, `reject` replaces this by an error with an unknown outcome.
      for (const one of deferred) one.reject(fault.reason);
      throw fault.reason;
    }
  }

  /**
   * Returns whether the server is the cause of a failed batch: not if other batches have succeeded since it began, but
   * always if the server is `refusing`, because it may refuse only new connections.
   */
  #isServerAtFault({ server }: BatchFailure, begunMs: number): boolean {
    return server === "refusing" || (server !== "healthy" && !this.#health.hasCommittedSince(begunMs));
  }

  /** Reports a worker as unavailable, unless the whole store has a problem: then the coordinator may be unavailable. */
  async #reportWorker(worker: number, { fault }: BatchFailure, begunMs: number): Promise<void> {
    const isStoreHealthy = await this.#health.check();
    if (isStoreHealthy) this.#unavailableWorkers.recordFailure(worker, problemOf(fault).text, begunMs);
  }

  async #findProblem(hasCommitted: boolean, deadlineMs: number): Promise<StoreProblem | undefined> {
    return await this.#withSession(deadlineMs, async (session) => {
      try {
        const schema = await this.#location.schemaOn(session);
        // Checked each time, because the pooler may have started to drop the settings since the last check.
        await checkRequestedSettings(session);
        await checkDatabase(session, schema);
        // The workers must be known before each of them is checked.
        await this.#location.refresh(session);
        if (hasCommitted) return undefined;
        await checkRights(session, schema);
        await this.#location.placement.checkWrite(session);
        return undefined;
      } catch (fault) {
        // The next check uses a new connection, perhaps to a server that has become the primary.
        session.discard();
        return problemOf(fault);
      }
    });
  }

  #queueOf(id: bigint): DeleteQueue {
    const { placement } = this.#location;
    const worker = placement.workerOf(id);
    let queue = this.#queues.get(worker);
    if (queue === undefined) {
      const commit = (batch: readonly PendingDelete[]): Promise<Outcomes> =>
        this.#commit(batch, performance.now() + batchTimeoutMs);
      const { inFlightMax } = placement;
      queue = new DeleteQueue({ commit, batchMax, waitingMax, inFlightMax, onBatch: this.#onBatch });
      this.#queues.set(worker, queue);
    }
    return queue;
  }

  #addSession(): Session {
    const session = new Session(this.#server, deleteTimeouts, this.#location.workers, this.#names);
    this.#sessions.push(session);
    return session;
  }

  async #withSession<Result>(deadlineMs: number, use: (session: Session) => Promise<Result>): Promise<Result> {
    const session = this.#idle.pop() ?? this.#addSession();
    session.deadlineMs = deadlineMs;
    try {
      return await use(session);
    } finally {
      this.#idle.push(session);
    }
  }
}
