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
import { lastedSince } from "../upkeep.ts";
import { Retention } from "./all-plants/retention.ts";
import { checkStore } from "./check-store.ts";
import { AwayWorkers } from "./citus/away-workers.ts";
import { Citus } from "./citus/citus.ts";
import { type LockedDelete, LockedDeletes } from "./delete/locked-deletes.ts";
import { problemOf } from "./delete/problem.ts";
import { BatchGivenUp, batchTimeoutMs, runBatch } from "./delete/run-batch.ts";
import { checkAskedSettings } from "./schema/check-asked-settings.ts";
import { checkDatabase, checkRights } from "./schema/check-database.ts";
import type { SessionTimeouts } from "./server/connect.ts";
import { followServerUrl } from "./server/follow-server-url.ts";
import { NamedStatements } from "./server/named-statements.ts";
import { readServerUrl, type Server } from "./server/server-url.ts";
import { Session } from "./server/session.ts";

/** Options of {@link openPostgresStore}. */
export interface PostgresStoreOptions extends DurableStoreOptions {
  /** `postgres://user:password@host:port/database`, as {@link readServerUrl} reads it. */
  readonly url: string;
  /** Returns the URL as it is now, as {@link followServerUrl} takes it. By default it stays what it is. */
  readonly currentUrl?: () => string;
}

// About 10 ms of work for the server.
const batchMax = 1_024;

// About a tenth of a second of work; a caller that would wait longer should rather try again later.
const waitingMax = 16_384;

/**
 * How often the server is checked, in milliseconds, by a write if no deletion has been committed meanwhile: so
 * readiness is turned off before a caller notices a fault.
 */
export const watchIntervalMs = 5_000;

/**
 * The time-outs of deletions. Another batch holds its locks for some milliseconds, and a statement runs for as long. A
 * plant that stays locked for much longer is attempted apart, and a statement that takes much longer is stuck.
 */
export const deleteTimeouts: SessionTimeouts = {
  lockTimeoutMs: 100,
  statementTimeoutMs: 5_000,
  answerTimeoutMs: 7_000,
};

/**
 * Opens a plant store in a PostgreSQL database, which any number of processes can share. The schema must exist:
 * processes of two releases may run at once, and the operator decides which of them migrates.
 *
 * Faults are handled as the fault table says, for ten seconds at most from when a deletion is sent; then the store
 * reports a `problem` and refuses deletions until the server responds again. It does so from the start if the server is
 * away, as it may be when a whole cluster starts.
 *
 * @throws StoreOpenError naming the server and what is wrong with it or its schema, if that will not pass by itself
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PlantStore> {
  checkDeletionsKept(options.deletionsKeptMs);
  const server =
    options.currentUrl === undefined ? readServerUrl(options.url) : followServerUrl(options.url, options.currentUrl);
  const citus = new Citus();
  const problem = await findFirstProblem(server, citus);
  if (problem?.mayBeBrief === false) throw new StoreOpenError(`cannot use ${server.name}: ${problem.text}`);
  return new PostgresStore(server, citus, problem, options);
}

async function findFirstProblem(server: Server, citus: Citus): Promise<StoreProblem | undefined> {
  const session = new Session(server, deleteTimeouts, citus);
  session.untilMs = performance.now() + batchTimeoutMs;
  try {
    await checkStore(session, citus);
    return undefined;
  } catch (fault) {
    return problemOf(fault);
  } finally {
    await session.close();
  }
}

class PostgresStore implements PlantStore {
  readonly #server: Server;
  /**
   * All sessions, as many as were ever in use at once: one per batch in flight, one for plants that are locked, and one
   * for the check of the server.
   */
  readonly #sessions: Session[] = [];
  /** The sessions that are not in use; the last one used is taken first. */
  readonly #idle: Session[] = [];
  readonly #citus: Citus;
  /**
   * One for each worker that was asked for a plant, by its index. The one without workers, at -1, is out of use once
   * Citus has spread the tables.
   */
  readonly #queues = new Map<number, DeleteQueue>();
  #isClosed = false;
  readonly #onBatch: OnBatch | undefined;
  readonly #locked = new LockedDeletes({
    commit: (batch, untilMs) => this.#commit(batch, untilMs),
    workerOf: (id) => this.#citus.placement.workerOf(id),
    batchMax,
    waitingMax,
  });
  readonly #health = new StoreHealth({
    findProblem: (hasWorked, untilMs) => this.#findProblem(hasWorked, untilMs),
    watchIntervalMs,
    briefMsMax: batchTimeoutMs,
  });
  readonly #retention: Retention;
  readonly #away: AwayWorkers;
  readonly #names: NamedStatements;

  constructor(
    server: Server,
    citus: Citus,
    problem: StoreProblem | undefined,
    { deletionsKeptMs = deletionsKeptMsDefault, onBatch, onUpkeep }: PostgresStoreOptions,
  ) {
    this.#server = server;
    this.#citus = citus;
    this.#onBatch = onBatch;
    if (problem !== undefined) this.#health.report(problem);
    this.#retention = new Retention(new Session(server, deleteTimeouts, citus), {
      keptMs: deletionsKeptMs,
      placementOn: (retentionSession) => citus.placementOn(retentionSession),
      hasDeletedSince: (timeMs) => this.#health.hasWorkedSince(timeMs),
      onUpkeep,
    });
    this.#away = new AwayWorkers(onUpkeep);
    const begunMs = performance.now();
    this.#names = new NamedStatements((refusal) =>
      onUpkeep?.({ kind: "names-refused", lastedMs: lastedSince(begunMs), problem: refusal }),
    );
  }

  get problem(): string | undefined {
    const problem = this.#health.problem;
    return problem && `${this.#server.name}: ${problem.text}`;
  }

  get waiting(): WaitingDeletions {
    const forBatch = [...this.#queues.values()].reduce((sum, { waiting }) => sum + waiting.forBatch, 0);
    const inUse = [...this.#queues].filter(([worker]) => worker >= 0 === this.#citus.isSpread);
    const forBatchMax = inUse.reduce((sum, [, { waiting }]) => sum + waiting.forBatchMax, 0);
    return { forBatch, forBatchMax: inUse.length === 0 ? waitingMax : forBatchMax, forLock: this.#locked.waiting };
  }

  get connections(): StoreConnections {
    return { used: this.#sessions.length - this.#idle.length, idle: this.#idle.length };
  }

  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#health.problem !== undefined) return Promise.reject(storeUnavailable(this.problem));
    if (this.#isClosed) return Promise.reject(storeUnavailable());
    return this.#queueOf(id).delete(id, this.#citus.placement.toRecordedCall(call, id));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    await this.#locked.close();
    this.#health.report({ text: "the store is closed", isTemporary: false });
    await Promise.all([this.#retention.stop(), ...this.#sessions.map((session) => session.close())]);
  }

  async #commit(batch: readonly LockedDelete[], untilMs: number): Promise<Outcomes> {
    // These were queued when the server became unavailable.
    if (this.#health.problem !== undefined) throw storeUnavailable(this.problem);
    const begunMs = performance.now();
    const { placement } = this.#citus;
    const [first] = batch;
    const worker = first === undefined ? 0 : placement.workerOf(first.id);
    // Handed over only once the batch has ended: if it is given up, all of its callers are told so.
    const locked: LockedDelete[] = [];
    try {
      const options = {
        setAside: (one: LockedDelete) => void locked.push(one),
        placement,
        skipsLocked: !this.#locked.isEmpty,
        token: first?.token,
      };
      const outcomes = await this.#withSession(untilMs, (session) => runBatch(session, batch, options));
      for (const one of locked) this.#locked.add(one, untilMs);
      // A batch that deletes nothing writes nothing.
      if (outcomes.includes(true)) this.#health.worked();
      this.#away.worked(worker);
      return outcomes;
    } catch (fault) {
      if (!(fault instanceof BatchGivenUp)) throw outcomeUnknown(fault);
      const mayBeOneWorker = placement.isSpread && (fault.server === "away" || fault.server === "busy");
      if (mayBeOneWorker) void this.#suspectWorker(worker, fault, begunMs);
      else if (this.#isSick(fault, begunMs)) this.#health.report(problemOf(fault.fault));
      // Deletions in doubt turn this reason into one that does not say that nothing was done.
      for (const one of locked) one.reject(fault.reason);
      throw fault.reason;
    }
  }

  /**
   * Returns whether the server is to blame. If it refuses, it is: it may refuse new connections alone. Otherwise it is
   * not if other batches have succeeded since this one began.
   */
  #isSick({ server }: BatchGivenUp, begunMs: number): boolean {
    return server === "refusing" || (server !== "well" && !this.#health.hasWorkedSince(begunMs));
  }

  /** Blames a worker, unless the store as a whole has a problem: then the coordinator may be lost. */
  async #suspectWorker(worker: number, { fault }: BatchGivenUp, begunMs: number): Promise<void> {
    const isStoreWell = await this.#health.suspect();
    if (isStoreWell) this.#away.failed(worker, problemOf(fault).text, begunMs);
  }

  async #findProblem(hasWorked: boolean, untilMs: number): Promise<StoreProblem | undefined> {
    return await this.#withSession(untilMs, async (session) => {
      try {
        const schema = await this.#citus.schemaOn(session);
        // A pooler may have begun to drop them.
        await checkAskedSettings(session);
        await checkDatabase(session, schema);
        // The check is made for each worker, so it needs to know them.
        await this.#citus.learn(session);
        if (hasWorked) return undefined;
        await checkRights(session, schema);
        await this.#citus.placement.checkWrite(session);
        return undefined;
      } catch (fault) {
        // The next check uses a new connection, which may lead to a server that has taken over.
        session.discard();
        return problemOf(fault);
      }
    });
  }

  #queueOf(id: bigint): DeleteQueue {
    const { placement } = this.#citus;
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
    const session = new Session(this.#server, deleteTimeouts, this.#citus, this.#names);
    this.#sessions.push(session);
    return session;
  }

  async #withSession<Result>(untilMs: number, use: (session: Session) => Promise<Result>): Promise<Result> {
    const session = this.#idle.pop() ?? this.#addSession();
    session.untilMs = untilMs;
    try {
      return await use(session);
    } finally {
      this.#idle.push(session);
    }
  }
}
