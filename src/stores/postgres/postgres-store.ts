import type { PlantStore, StoreConnections } from "../../service/index.ts";
import {
  type Attempt,
  type Backend,
  type BatchResult,
  batchTimeoutMs,
  type Lanes,
  type Requested,
} from "../contract/backend.ts";
import type { DurableStoreOptions } from "../contract/durable-store-options.ts";
import { queuedStore } from "../queue/queued-store.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { StoreHealth, type StoreProblem } from "../contract/store-health.ts";
import { checkDeletionsKept, deletionsKeptMsDefault } from "../contract/retention.ts";
import { elapsedMsSince, type OnUpkeep, type Upkeep } from "../contract/upkeep.ts";
import { Retention } from "./all-plants/retention.ts";
import { TableLocation } from "./table-location.ts";
import { Deletion, endings } from "./delete/deletion.ts";
import { problemOf } from "./delete/problem.ts";
import { BatchFailure, deleteTimeouts, runBatch } from "./delete/run-batch.ts";
import { checkRequestedSettings, findRefusedTimeouts } from "./schema/check-requested-settings.ts";
import { checkDatabase, checkRights } from "./schema/check-database.ts";
import { NamedStatements } from "./server/named-statements.ts";
import { followServerUrl, readServerUrl, type Server } from "./server/server-url.ts";
import { Session } from "./server/session.ts";
import { sqlStateOf } from "./server/sql-state.ts";
import { SessionPool } from "./server/session-pool.ts";

/** Options for {@link openPostgresStore}. */
export interface PostgresStoreOptions extends DurableStoreOptions {
  /** The database URL, `postgres://user:password@host:port/database`, see {@link readServerUrl}. */
  readonly url: string;
  /** Returns the current URL, see {@link followServerUrl}. By default, the URL does not change. */
  readonly currentUrl?: () => string;
}

/** Interval between checks of the server, in milliseconds. A check writes if no deletion was committed recently. */
export const watchIntervalMs = 5_000;

/**
 * Opens a plant store in a PostgreSQL database, which any number of processes can share. The schema must exist.
 *
 * A failed batch is retried according to the fault table, for at most ten seconds. If the batch
 * still fails and no other batch has succeeded since then, or if the server refuses everything, the store reports a
 * `problem` and refuses deletions until a check succeeds. If the server is unavailable at the start, the store opens
 * with a `problem`. If one of several workers is unavailable, only its deletions fail, without a `problem`.
 *
 * @throws StoreOpenError with the server's name, for a problem that cannot end within seconds
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
  return queuedStore(new PostgresBackend(server, location, problem, options), { onBatch: options.onBatch });
}

type Refusal = Extract<Upkeep["kind"], `${string}-refused`>;

class PostgresBackend implements Backend {
  readonly #health = new StoreHealth({
    findProblem: (hasCommitted, deadlineMs) => this.#findProblem(hasCommitted, deadlineMs),
    watchIntervalMs,
    graceMs: batchTimeoutMs,
  });
  readonly #server: Server;
  readonly #sessions: SessionPool;
  readonly #location: TableLocation;
  readonly #retention: Retention;
  readonly #onUpkeep: OnUpkeep | undefined;
  /** The refusals that were reported. Each kind is reported once. */
  readonly #reported = new Set<Refusal>();

  constructor(
    server: Server,
    location: TableLocation,
    problem: StoreProblem | undefined,
    { deletionsKeptMs = deletionsKeptMsDefault, onUpkeep }: PostgresStoreOptions,
  ) {
    this.#server = server;
    this.#location = location;
    this.#onUpkeep = onUpkeep;
    if (problem !== undefined) this.#health.report(problem);
    this.#retention = new Retention(new Session(server, deleteTimeouts, location.workers), {
      keptMs: deletionsKeptMs,
      placementOn: (retentionSession) => location.placementOn(retentionSession),
      hasDeletedSince: (timeMs) => this.#health.hasCommittedSince(timeMs),
      onUpkeep,
    });
    const begunMs = performance.now();
    const names = new NamedStatements((refusal) => this.#report("prepared-statements-refused", begunMs, refusal));
    const openSession = (): Session => new Session(server, deleteTimeouts, location.workers, names);
    this.#sessions = new SessionPool(openSession);
  }

  get name(): string {
    return this.#server.name;
  }

  get lanes(): Lanes {
    return this.#location.placement.lanes;
  }

  get problem(): StoreProblem | undefined {
    return this.#health.problem;
  }

  get connections(): StoreConnections {
    return this.#sessions.connections;
  }

  async commit(batch: readonly Requested[], { deadlineMs, isCareful }: Attempt): Promise<BatchResult> {
    const deletions = batch.map((one) => new Deletion(one));
    const failure = await this.#run(deletions, deadlineMs, isCareful);
    // A batch that deletes no plant writes nothing, and so does not show that commits work.
    if (failure === undefined && deletions.some(({ ending }) => ending?.outcome === "deleted"))
      this.#health.recordCommit();
    return {
      outcomes: deletions.map(({ ending, isDeferred }) => ending?.outcome ?? (isDeferred ? "locked" : "unknown")),
      causes: deletions.map(({ ending }) => ending?.cause),
      failure,
    };
  }

  /** Ends or defers each deletion. Returns the error if the batch failed. */
  async #run(batch: readonly Deletion[], deadlineMs: number, isCareful: boolean): Promise<unknown> {
    const begunMs = performance.now();
    const { placement } = this.#location;
    const { lanes } = placement;
    // Only deletions that were locked may be in doubt, or have moved to another worker while they waited.
    const parts = isCareful
      ? Map.groupBy(batch, ({ id, token }) => `${token} ${lanes.of(id)}`)
      : new Map([["", batch]]);
    let failed: BatchFailure | undefined;
    for (const part of parts.values()) {
      // These servers would fail the other parts too, which have not been attempted.
      if (failed?.server === "refusing" || failed?.server === "unavailable") {
        for (const one of part) one.fail(endings.unavailable(failed.ending.cause));
        continue;
      }
      try {
        await this.#sessions.use(deadlineMs, (session) => runBatch(session, part, { placement, isCareful }));
      } catch (fault) {
        // Only a bug has another error. The deletions that have ended keep their outcomes.
        if (!(fault instanceof BatchFailure)) return failByBug(batch, fault);
        failed = fault;
        for (const one of part) one.fail(fault.ending);
        this.#reportFailure(fault, begunMs);
      }
    }
    return failed?.ending.cause;
  }

  #reportFailure({ server, fault }: BatchFailure, begunMs: number): void {
    const problem = problemOf(fault);
    // The store may be healthy even if the server refuses more connections.
    if (sqlStateOf(fault) === "53300") this.#report("connections-refused", begunMs, problem.text);
    const { mayFailPartly } = this.#location.placement;
    const isMaybeOneServer = mayFailPartly && (server === "unavailable" || server === "busy");
    // The server is not at fault if another batch has succeeded since this batch began. A `refusing` server is always
    // at fault, because it may refuse only new connections.
    const isServerAtFault = server === "refusing" || (server !== "healthy" && !this.#health.hasCommittedSince(begunMs));
    if (isMaybeOneServer) void this.#health.check();
    else if (isServerAtFault) this.#health.report(problem);
  }

  async close(): Promise<void> {
    this.#health.report({ text: "the store is closed", isTemporary: false });
    await Promise.all([this.#retention.stop(), this.#sessions.close()]);
  }

  async #findProblem(hasCommitted: boolean, deadlineMs: number): Promise<StoreProblem | undefined> {
    return await this.#sessions.use(deadlineMs, async (session) => {
      try {
        const schema = await this.#location.schemaOn(session);
        // Checks the settings each time, because a pooler may have started to drop settings since the last check.
        await checkRequestedSettings(session);
        await checkDatabase(session, schema);
        // Finds the workers, because `checkWrite` checks each worker.
        await this.#location.refresh(session);
        const begunMs = performance.now();
        const refusedTimeouts = await findRefusedTimeouts(session, deleteTimeouts);
        if (refusedTimeouts !== undefined) this.#report("timeouts-refused", begunMs, refusedTimeouts);
        if (hasCommitted) return undefined;
        await checkRights(session, schema);
        await this.#location.placement.checkWrite(session);
        return undefined;
      } catch (fault) {
        // The next check uses a new connection, perhaps to a new primary.
        session.discard();
        return problemOf(fault);
      }
    });
  }

  #report(kind: Refusal, begunMs: number, problem: string): void {
    if (this.#reported.has(kind)) return;
    this.#reported.add(kind);
    this.#onUpkeep?.({ kind, lastedMs: elapsedMsSince(begunMs), problem });
  }
}

/** Reports a bug, and returns it as the batch's failure. */
function failByBug(batch: readonly Deletion[], bug: unknown): unknown {
  process.emitWarning(bug instanceof Error ? bug : String(bug));
  for (const one of batch) one.fail(endings.unknown(bug));
  return bug;
}
