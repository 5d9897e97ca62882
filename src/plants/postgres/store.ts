import { DeleteQueue, type Outcomes, type TakenDelete } from "../delete-queue.ts";
import { outcomeUnknown, storeAway, StoreOpenError } from "../errors.ts";
import { Health, type StoreProblem } from "../health.ts";
import type { DeleteCall, PlantStore } from "../plant-store.ts";
import { checkDeletionsKept, deletionsKeptMsDefault } from "../retention.ts";
import type { SessionLimits } from "./connect.ts";
import { checkDatabase } from "./migrate.ts";
import { problemOf } from "./problem.ts";
import { Retention } from "./retention.ts";
import { BatchGivenUp, runBatch } from "./run-batch.ts";
import { readServerUrl, type Server } from "./server-url.ts";
import { Session } from "./session.ts";

/** Which database to use, and how. */
export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`, as {@link readServerUrl} reads it. */
  readonly url: string;
  /** How long deletion records are kept, in milliseconds. Default 90 days, an hour at least. */
  readonly deletionsKeptMs?: number;
}

// Two batches at a time: while one waits for the server's disk, the next is on its way.
const inFlightMax = 2;

// About 10 ms of work for the server.
const batchMax = 1_024;

// About a tenth of a second of work. Who would wait longer is better told to come back.
const waitingMax = 16_384;

// How often the server is asked how it is: readiness goes off before the first caller learns it.
const watchIntervalMs = 5_000;

// A lock is held for the length of another batch, and a statement runs for milliseconds. What takes this
// long is stuck, and is better tried again than waited for.
const limits: SessionLimits = { lockTimeoutMs: 2_000, statementTimeoutMs: 5_000, answerTimeoutMs: 7_000 };

/**
 * Opens a plant store in a PostgreSQL database, which any number of processes share. The schema must be
 * there: processes of two releases may run at once, and which of them migrates is for the operator to say.
 *
 * Faults are met as the fault table says, for ten seconds at most; then the store says what is wrong in
 * `problem` and refuses deletions, until the server answers again.
 *
 * @throws StoreOpenError naming the server and what is wrong with it or its schema
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PlantStore> {
  checkDeletionsKept(options.deletionsKeptMs);
  const server = readServerUrl(options.url);
  const session = new Session(server, limits);
  try {
    await checkDatabase(session);
  } catch (fault) {
    throw new StoreOpenError(`cannot use ${server.name}: ${problemOf(fault).text}`, { cause: fault });
  } finally {
    await session.close();
  }
  return new PostgresStore(server, options.deletionsKeptMs ?? deletionsKeptMsDefault);
}

class PostgresStore implements PlantStore {
  readonly #name: string;
  /** One for each batch in flight, and one to find out beside them how the server is. */
  readonly #sessions: readonly Session[];
  /** Those that are not in use. The last used is taken first, so that the last one connects only when it must. */
  readonly #idle: Session[];
  readonly #queue = new DeleteQueue({ commit: (batch) => this.#commit(batch), batchMax, waitingMax, inFlightMax });
  readonly #health = new Health(() => this.#findProblem(), watchIntervalMs);
  readonly #retention: Retention;

  constructor(server: Server, deletionsKeptMs: number) {
    this.#name = server.name;
    this.#sessions = Array.from({ length: inFlightMax + 1 }, () => new Session(server, limits));
    this.#idle = [...this.#sessions];
    this.#retention = new Retention(new Session(server, limits), deletionsKeptMs);
  }

  get problem(): string | undefined {
    const problem = this.#health.problem;
    return problem && `${this.#name}: ${problem.text}`;
  }

  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#health.problem !== undefined) return Promise.reject(storeAway(this.problem));
    return this.#queue.delete(id, call);
  }

  async close(): Promise<void> {
    await this.#queue.close();
    this.#health.report({ text: "the store is closed", passing: false });
    await this.#retention.stop();
    await Promise.all(this.#sessions.map((session) => session.close()));
  }

  async #commit(batch: readonly TakenDelete[]): Promise<Outcomes> {
    // What was queued when the server went away.
    if (this.#health.problem !== undefined) throw storeAway(this.problem);
    try {
      return await this.#withSession((session) => runBatch(session, batch));
    } catch (fault) {
      if (!(fault instanceof BatchGivenUp)) throw outcomeUnknown(fault);
      if (!fault.isServerWell) this.#health.report(problemOf(fault.fault));
      throw fault.reason;
    }
  }

  async #findProblem(): Promise<StoreProblem | undefined> {
    return await this.#withSession(async (session) => {
      try {
        await checkDatabase(session);
        return undefined;
      } catch (fault) {
        // The next look comes on a new connection, which may lead to a server that has taken over.
        session.discard();
        return problemOf(fault);
      }
    });
  }

  async #withSession<Result>(use: (session: Session) => Promise<Result>): Promise<Result> {
    const session = this.#idle.pop();
    if (session === undefined) throw new Error("there are fewer sessions than uses of them");
    try {
      return await use(session);
    } finally {
      this.#idle.push(session);
    }
  }
}
