import { importPlants, openPlantDatabase, type PlantLocation } from "../../../src/stores/index.ts";

export interface Call {
  readonly id: number;
  readonly subject: string;
  readonly key?: string | undefined;
  readonly requestId: string;
}

/** The response to a deletion: `deleted`, `not found` or an error's identifier. */
export type Message = { readonly requestId: string; readonly outcome: string };

export interface StoredRecord {
  readonly id: number;
  readonly subject: string;
  readonly key?: string | undefined;
  readonly requestId: string;
}

/** A database, as a store's host uses it. */
export interface Database extends AsyncDisposable {
  readonly location: PlantLocation;
  /** Returns the rows that a statement returns. The statement is valid on SQLite and PostgreSQL. */
  query(sql: string): Promise<readonly Record<string, unknown>[]>;
  /** Returns all deletion records, in the order in which plants were deleted. */
  records(): Promise<readonly StoredRecord[]>;
  age(): Promise<void>;
  /** Resolves once no killed process's statement is running. */
  settle(): Promise<void>;
  /** Kills the server, and starts it again. */
  crash?(): Promise<void>;
  backUp?(): () => void;
  /** Whether the newest record is never dropped. */
  readonly keepsNewest: boolean;
}

/** A store that runs, in a process or a thread. */
export interface RunningStore {
  /** Sends a deletion, whose outcome is reported unless the store is killed before. */
  send(call: Call): void;
  /** Closes the store. Resolves once its process or thread has exited. */
  close(): Promise<void>;
  /** Kills the process or thread without closing the store. */
  kill(): Promise<void>;
  /** Whether the store still reports outcomes. */
  readonly isRunning: boolean;
}

/** Opens the store at a location. @param onMessage - called with each outcome */
export type StartStore = (location: PlantLocation, onMessage: (message: Message) => void) => Promise<RunningStore>;

/** Runs a store on a database, kills it and starts it again. */
export class StoreHost {
  readonly database: Database;
  readonly #startStore: StartStore;
  #store: RunningStore | undefined;
  #onMessage: (message: Message) => void = () => undefined;

  constructor(database: Database, startStore: StartStore) {
    this.database = database;
    this.#startStore = startStore;
  }

  async start(): Promise<void> {
    this.#store = await this.#startStore(this.database.location, (message) => this.#onMessage(message));
  }

  async close(): Promise<void> {
    await this.#release()?.close();
  }

  async kill(): Promise<void> {
    await this.#release()?.kill();
    await this.database.settle();
  }

  /** Sends deletions concurrently, and returns outcomes by request id. `crash` runs after some responses. */
  async delete(
    calls: readonly Call[],
    crash?: { readonly after: number; readonly run: () => Promise<void> },
  ): Promise<ReadonlyMap<string, string>> {
    const outcomes = new Map<string, string>();
    const wanted = crash?.after ?? calls.length;
    const done = Promise.withResolvers<void>();
    if (wanted === 0) done.resolve();
    this.#onMessage = ({ requestId, outcome }) => {
      outcomes.set(requestId, outcome);
      if (outcomes.size === wanted) done.resolve();
    };
    for (const call of calls) this.#store?.send(call);
    await done.promise;
    await crash?.run();
    while (outcomes.size < calls.length && this.#store?.isRunning === true)
      await new Promise((resolve) => setTimeout(resolve, 5));
    return outcomes;
  }

  async import(ids: readonly number[], isRestore: boolean): Promise<void> {
    await using database = await openPlantDatabase(this.database.location);
    const text = (async function* () {
      yield Buffer.from(ids.map((id) => `${id}\n`).join(""));
    })();
    await importPlants(database, text, { restore: isRestore });
  }

  async plants(): Promise<number[]> {
    const rows = await this.database.query("SELECT id FROM plants ORDER BY id");
    return rows.map(({ id }) => Number(id));
  }

  #release(): RunningStore | undefined {
    const store = this.#store;
    this.#store = undefined;
    return store;
  }
}
