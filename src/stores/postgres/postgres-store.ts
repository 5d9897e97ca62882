import { setTimeout as sleep } from "node:timers/promises";
import type { PlantStore, StoreConnections } from "../../service/index.ts";
import { type Backend, type BatchResult, batchTimeoutMs, type Lanes, type Requested } from "../contract/backend.ts";
import {
  checkDeletionsKept,
  deletionsKeptMsDefault,
  type DurableStoreOptions,
  elapsedMsSince,
  type OnUpkeep,
  StoreOpenError,
} from "../contract/store-options.ts";
import { queuedStore } from "../queue/delete-queue.ts";
import { retryIntervalMs, StoreHealth, type StoreProblem } from "../contract/store-health.ts";
import { startRetention } from "./all-plants/retention.ts";
import { type BatchFailure, BatchRun } from "./delete/batch-run.ts";
import { concernsPlants, problemOf } from "./delete/fault-table.ts";
import { deleteTimeouts } from "./delete/store-tables.ts";
import { sqlStateOf } from "./server/connect.ts";
import { readServerUrl, type PostgresServer } from "./server/server-url.ts";
import { Session, SessionPool } from "./server/session.ts";
import { TableLocation } from "./table-location.ts";

interface PostgresStoreOptions extends DurableStoreOptions {
  /** The database URL, `postgres://user:password@host:port/database`, see {@link readServerUrl}. */
  readonly url: string;
  /** Returns the current URL, see {@link readServerUrl}. By default, the URL does not change. */
  readonly currentUrl?: () => string;
}

/** Interval between checks of the server, in milliseconds. A check writes if no deletion was committed recently. */
export const watchIntervalMs = 5_000;

/**
 * Opens a plant store in a PostgreSQL database, which any number of processes can share. The schema must exist.
 *
 * A failed batch is retried for at most ten seconds. If the batch still fails and no other batch has succeeded since
 * then, or if the server refuses everything, the store reports a `problem` and refuses deletions until a check succeeds.
 * If the server is unavailable at the start, the store opens with a `problem`. If one of several workers is unavailable,
 * only its deletions fail, without a `problem`.
 *
 * @throws StoreOpenError with the server's name, for a problem that cannot end within seconds
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PlantStore> {
  checkDeletionsKept(options.deletionsKeptMs);
  const server = readServerUrl(options.url, options.currentUrl);
  const location = new TableLocation();
  const session = new Session(server, deleteTimeouts);
  session.deadlineMs = performance.now() + batchTimeoutMs;
  const problem = await location.check(session).then(() => undefined, problemOf);
  await session.close();
  if (problem?.mayBeBrief === false) throw new StoreOpenError(`cannot use ${server.name}: ${problem.text}`);
  const backend = new PostgresBackend(server, location, options);
  if (problem !== undefined) backend.health.report(problem);
  return queuedStore(backend, { onBatch: options.onBatch });
}

class PostgresBackend implements Backend {
  readonly name: string;
  readonly health: StoreHealth = new StoreHealth({
    findProblem: (hasCommitted) => this.#findProblem(hasCommitted),
    watchIntervalMs,
  });
  readonly #sessions: SessionPool;
  readonly #location: TableLocation;
  readonly #stopRetention: () => Promise<void>;
  readonly #onUpkeep: OnUpkeep | undefined;
  #hasReportedRefusal = false;

  constructor(server: PostgresServer, location: TableLocation, options: PostgresStoreOptions) {
    const { deletionsKeptMs: keptMs = deletionsKeptMsDefault, onUpkeep } = options;
    this.name = server.name;
    this.#location = location;
    this.#onUpkeep = onUpkeep;
    this.#stopRetention = startRetention(new Session(server, deleteTimeouts), {
      keptMs,
      tablesOn: (session) => location.tablesOn(session),
      hasDeletedSince: (timeMs) => this.health.hasCommittedSince(timeMs),
      onUpkeep,
    });
    const prepared = { areKept: true };
    this.#sessions = new SessionPool(() => new Session(server, deleteTimeouts, prepared));
  }

  get lanes(): Lanes {
    return this.#location.tables.lanes;
  }

  get problem(): StoreProblem | undefined {
    return this.health.problem;
  }

  get connections(): StoreConnections {
    return this.#sessions.connections;
  }

  async commit(batch: readonly Requested[], deadlineMs: number): Promise<BatchResult> {
    const begunMs = performance.now();
    const { tables } = this.#location;
    return await this.#sessions.use(deadlineMs, async (session) => {
      const running = new BatchRun(session, tables);
      const result = await running.run(batch);
      if (running.failure !== undefined) this.#reportFailure(running.failure, begunMs, tables.isDistributed);
      else if (running.hasDeleted) this.health.recordCommit();
      return result;
    });
  }

  #reportFailure({ verdict, fault }: BatchFailure, begunMs: number, isDistributed: boolean): void {
    const problem = problemOf(fault);
    // The store may be healthy even if the server refuses more connections. Reported once.
    if (sqlStateOf(fault) === "53300" && !this.#hasReportedRefusal) {
      this.#hasReportedRefusal = true;
      this.#onUpkeep?.({ kind: "connections-refused", lastedMs: elapsedMsSince(begunMs), problem: problem.text });
    }
    if (concernsPlants.has(verdict)) return;
    // The server is not at fault if another batch has succeeded since this batch began, unless it refuses everything,
    // because it may refuse only new connections. If it is one of several, a check finds out whether the others work.
    if (verdict === "fail") this.health.report(problem);
    else if (isDistributed) void this.health.check();
    else if (!this.health.hasCommittedSince(begunMs)) this.health.report(problem);
  }

  async close(): Promise<void> {
    this.health.report({ text: "the store is closed", isTemporary: false });
    await Promise.all([this.#stopRetention(), this.#sessions.close()]);
  }

  /**
   * Repeats a check that fails for a reason that may be brief, for as long as a batch, unless the store has a problem. A
   * deletion that was committed meanwhile shows that the reason concerns only the check, such as a refused connection.
   */
  async #findProblem(hasCommitted: boolean): Promise<StoreProblem | undefined> {
    const begunMs = performance.now();
    return await this.#sessions.use(begunMs + batchTimeoutMs, async (session) => {
      for (let isWritten = hasCommitted; ; isWritten = false) {
        try {
          const tables = await this.#location.check(session);
          if (!isWritten) await tables.checkWrite(session);
          return undefined;
        } catch (fault) {
          // The next check uses a new connection, perhaps to a new primary.
          session.discard();
          const problem = problemOf(fault);
          if (problem.mayBeBrief && this.health.hasCommittedSince(begunMs)) return undefined;
          const isFinal = !problem.mayBeBrief || session.remainingMs < 2 * retryIntervalMs;
          if (isFinal || this.health.problem !== undefined) return problem;
        }
        await sleep(retryIntervalMs, undefined, { ref: false });
      }
    });
  }
}
