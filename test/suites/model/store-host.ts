import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { toolsFolder } from "../../../packages/testing/src/process/tools-folder.ts";
import { importPlants, openPlantDatabase, type PlantLocation } from "../../../src/stores/index.ts";

/** A deletion. */
export interface Call {
  readonly id: number;
  readonly subject: string;
  readonly key?: string | undefined;
  readonly requestId: string;
}

/** The response to a deletion: `deleted`, `not found` or an error's identifier. */
export interface Message {
  readonly requestId: string;
  readonly outcome: string;
}

/** A deletion record, as it is stored. */
export interface StoredRecord {
  readonly id: number;
  readonly subject: string;
  readonly key?: string | undefined;
  readonly requestId: string;
}

/** A database, as the host of a store uses it. */
export interface Database extends AsyncDisposable {
  readonly location: PlantLocation;
  /** Returns the rows that a statement returns. The statement is valid on SQLite and PostgreSQL. */
  query(sql: string): Promise<readonly Record<string, unknown>[]>;
  /** Returns all deletion records, in the order of the deletions. */
  records(): Promise<readonly StoredRecord[]>;
  /** Makes all records three days older. */
  age(): Promise<void>;
  /** Resolves once no statement of a killed process is running. */
  settle(): Promise<void>;
  /** Kills the server, and starts it again. */
  crash?(): Promise<void>;
  /** Writes a backup, and returns a function that restores it. */
  backUp?(): () => void;
  /** Whether the newest record is never dropped. */
  readonly keepsNewest: boolean;
}

const program = fileURLToPath(new URL("store-process.ts", import.meta.url));

/** Runs a store in a separate process. */
export class StoreHost {
  readonly database: Database;
  #child: ChildProcess | undefined;
  #onMessage: (message: Message) => void = () => undefined;

  constructor(database: Database) {
    this.database = database;
  }

  /** Starts the process, and waits until its store is open. */
  async start(): Promise<void> {
    const child = fork(program, [JSON.stringify(this.database.location)], {
      execArgv: [],
      env: { ...process.env, NODE_COMPILE_CACHE: toolsFolder("compile-cache") },
    });
    this.#child = child;
    child.on("message", (message: Message) => this.#onMessage(message));
    const [message] = await Promise.race([once(child, "message"), once(child, "exit")]);
    if (message?.outcome !== "open") throw new Error("the process did not open its store");
  }

  /** Closes the store, and waits for the process's exit. */
  async close(): Promise<void> {
    await this.#stop((child) => child.send("close"));
  }

  async kill(): Promise<void> {
    await this.#stop((child) => child.kill("SIGKILL"));
    await this.database.settle();
  }

  /**
   * Sends deletions concurrently and returns the outcomes by request id.
   *
   * @param crash - called after this many responses; if it kills the process, the others get no response
   */
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
    for (const call of calls) this.#child?.send(call);
    await done.promise;
    await crash?.run();
    while (outcomes.size < calls.length && this.#child?.connected === true)
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

  async #stop(how: (child: ChildProcess) => void): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const exit = once(child, "exit");
    how(child);
    await exit;
  }
}
