import { DeleteQueue, type Outcomes, type PendingDelete } from "../delete-queue.ts";
import { outcomeUnknown, storeAway } from "../errors.ts";
import { StoreOpenError } from "../store-open-error.ts";
import { StoreHealth, type StoreProblem } from "../store-health.ts";
import type { DeleteCall, OnBatch, PlantStore, StoreConnections, WaitingDeletions } from "../plant-store.ts";
import { checkDeletionsKept, deletionsKeptMsDefault } from "../retention.ts";
import type { OnUpkeep } from "../upkeep.ts";
import { AwayWorkers } from "./away-workers.ts";
import { checkRights, checkWorkers, checkWrite } from "./check-write.ts";
import { Shards, toCallOnCitus } from "./citus.ts";
import type { SessionTimeouts } from "./connect.ts";
import { type LockedDelete, LockedDeletes } from "./locked-deletes.ts";
import { checkDatabase } from "./migrate.ts";
import { problemOf } from "./problem.ts";
import { Retention } from "./retention.ts";
import { BatchGivenUp, runBatch, toldWithinMs } from "./run-batch.ts";
import { followServerUrl } from "./follow-server-url.ts";
import { readServerUrl, type Server } from "./server-url.ts";
import { Session } from "./session.ts";

/** Options of {@link openPostgresStore}. */
export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`, as {@link readServerUrl} reads it. */
  readonly url: string;
  /** Returns the URL as it is now, as {@link followServerUrl} takes it. By default it stays what it is. */
  readonly currentUrl?: () => string;
  /** How long deletion records are kept, in milliseconds. Default 90 days, an hour at least. */
  readonly deletionsKeptMs?: number;
  readonly onBatch?: OnBatch | undefined;
  readonly onUpkeep?: OnUpkeep | undefined;
}

// Two batches at a time: while one waits for the disk of the server, the next is on its way.
const inFlightMax = 2;

// On Citus one for each worker: a batch costs a statement for each shard that it touches, so fewer and larger batches
// are cheaper. test/citus/load.ts: twice as many deletions as with two at a time.
const inFlightMaxOfWorker = 1;

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
  const shards = new Shards();
  const problem = await findFirstProblem(server, shards);
  if (problem?.mayBeBrief === false) throw new StoreOpenError(`cannot use ${server.name}: ${problem.text}`);
  return new PostgresStore(server, shards, problem, options);
}

async function findFirstProblem(server: Server, shards: Shards): Promise<StoreProblem | undefined> {
  const session = new Session(server, deleteTimeouts, shards);
  session.untilMs = performance.now() + toldWithinMs;
  try {
    await checkDatabase(session);
    await checkRights(session);
    await shards.learn(session);
    await checkWorkers(session);
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
  readonly #shards: Shards;
  /**
   * For tables that Citus has not spread. Once it has, this queue only refuses, after `close`, the plants of workers
   * that have none.
   */
  readonly #firstQueue: DeleteQueue;
  /** One for each worker of Citus that was asked for a plant, by its index. */
  readonly #workerQueues = new Map<number, DeleteQueue>();
  #isClosed = false;
  readonly #onBatch: OnBatch | undefined;
  readonly #locked = new LockedDeletes({
    commit: (batch, untilMs) => this.#commit(batch, untilMs),
    workerOf: (id) => this.#shards.workerOf(id),
    batchMax,
    waitingMax,
  });
  readonly #health = new StoreHealth({
    findProblem: (hasWorked, untilMs) => this.#findProblem(hasWorked, untilMs),
    watchIntervalMs,
    briefMsMax: toldWithinMs,
  });
  readonly #retention: Retention;
  readonly #away: AwayWorkers;

  constructor(
    server: Server,
    shards: Shards,
    problem: StoreProblem | undefined,
    { deletionsKeptMs = deletionsKeptMsDefault, onBatch, onUpkeep }: PostgresStoreOptions,
  ) {
    this.#server = server;
    this.#shards = shards;
    this.#onBatch = onBatch;
    if (problem !== undefined) this.#health.report(problem);
    this.#retention = new Retention(new Session(server, deleteTimeouts, shards), deletionsKeptMs, onUpkeep);
    this.#away = new AwayWorkers(onUpkeep);
    this.#firstQueue = this.#createQueue(inFlightMax);
  }

  get problem(): string | undefined {
    const problem = this.#health.problem;
    return problem && `${this.#server.name}: ${problem.text}`;
  }

  get #queues(): readonly DeleteQueue[] {
    return [this.#firstQueue, ...this.#workerQueues.values()];
  }

  get waiting(): WaitingDeletions {
    const forBatch = this.#queues.reduce((sum, { waiting }) => sum + waiting.forBatch, 0);
    // Once there are workers, nothing is put into the first queue any more.
    const inUse = this.#workerQueues.size > 0 ? [...this.#workerQueues.values()] : [this.#firstQueue];
    const forBatchMax = inUse.reduce((sum, { waiting }) => sum + waiting.forBatchMax, 0);
    return { forBatch, forBatchMax, forLock: this.#locked.waiting };
  }

  get connections(): StoreConnections {
    return { used: this.#sessions.length - this.#idle.length, idle: this.#idle.length };
  }

  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#health.problem !== undefined) return Promise.reject(storeAway(this.problem));
    if (!this.#shards.areThere) return this.#firstQueue.delete(id, call);
    return this.#queueOf(id).delete(id, toCallOnCitus(call, id));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#queues.map((queue) => queue.close()));
    await this.#locked.close();
    this.#health.report({ text: "the store is closed", isTemporary: false });
    await Promise.all([this.#retention.stop(), ...this.#sessions.map((session) => session.close())]);
  }

  async #commit(batch: readonly LockedDelete[], untilMs: number): Promise<Outcomes> {
    // These were queued when the server became unavailable.
    if (this.#health.problem !== undefined) throw storeAway(this.problem);
    const begunMs = performance.now();
    // Handed over only once the batch has ended: if it is given up, all of its callers are told so.
    const locked: LockedDelete[] = [];
    try {
      const options = {
        setAside: (one: LockedDelete) => void locked.push(one),
        skipsLocked: this.#locked.areThere,
        token: batch[0]?.token,
      };
      const outcomes = await this.#withSession(untilMs, (session) => runBatch(session, batch, options));
      for (const one of locked) this.#locked.add(one, untilMs);
      // A batch that deletes nothing writes nothing.
      if (outcomes.includes(true)) this.#health.worked();
      if (this.#shards.areThere) this.#away.worked(this.#workerOf(batch));
      return outcomes;
    } catch (fault) {
      if (!(fault instanceof BatchGivenUp)) throw outcomeUnknown(fault);
      const mayBeOneWorker = this.#shards.areThere && (fault.server === "away" || fault.server === "busy");
      if (mayBeOneWorker) void this.#suspectWorker(batch, fault, begunMs);
      else if (this.#isSick(fault, begunMs)) this.#health.report(problemOf(fault.fault));
      // Deletions in doubt turn this reason into one that does not say that nothing was done.
      for (const one of locked) one.reject(fault.reason);
      throw fault.reason;
    }
  }

  /** Returns whether the server is to blame. It is not if other batches have succeeded since this one began. */
  #isSick({ server }: BatchGivenUp, begunMs: number): boolean {
    return server === "refusing" || (server !== "well" && !this.#health.hasWorkedSince(begunMs));
  }

  /** Blames the worker of a batch, unless the store as a whole has a problem: then the coordinator may be lost. */
  async #suspectWorker(batch: readonly PendingDelete[], { fault }: BatchGivenUp, begunMs: number): Promise<void> {
    const isStoreWell = await this.#health.suspect();
    if (isStoreWell) this.#away.failed(this.#workerOf(batch), problemOf(fault).text, begunMs);
  }

  /** Returns the index of the worker that a batch is for. */
  #workerOf([first]: readonly PendingDelete[]): number {
    return first === undefined ? 0 : this.#shards.workerOf(first.id);
  }

  async #findProblem(hasWorked: boolean, untilMs: number): Promise<StoreProblem | undefined> {
    return await this.#withSession(untilMs, async (session) => {
      try {
        await checkDatabase(session);
        // The check is made for each worker, so it needs to know them.
        await this.#shards.learn(session);
        if (!hasWorked) await checkWrite(session);
        return undefined;
      } catch (fault) {
        // The next check uses a new connection, which may lead to a server that has taken over.
        session.discard();
        return problemOf(fault);
      }
    });
  }

  #createQueue(inFlight: number): DeleteQueue {
    const commit = (batch: readonly PendingDelete[]): Promise<Outcomes> =>
      this.#commit(batch, performance.now() + toldWithinMs);
    return new DeleteQueue({ commit, batchMax, waitingMax, inFlightMax: inFlight, onBatch: this.#onBatch });
  }

  #queueOf(id: bigint): DeleteQueue {
    const worker = this.#shards.workerOf(id);
    const queue = this.#workerQueues.get(worker);
    if (queue !== undefined) return queue;
    // A queue that is made after `close` would not be closed. The first one has been, and refuses.
    if (this.#isClosed) return this.#firstQueue;
    const created = this.#createQueue(inFlightMaxOfWorker);
    this.#workerQueues.set(worker, created);
    return created;
  }

  #addSession(): Session {
    const session = new Session(this.#server, deleteTimeouts, this.#shards);
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
