import { getCompileCacheDir } from "node:module";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { StoreFile } from "../../service/index.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";
import type { StoreProblem } from "../contract/store-health.ts";
import type { OnUpkeep, Upkeep } from "../contract/upkeep.ts";
import type { DatabaseOptions } from "./database.ts";
import type { BatchResult, DeleteBatch } from "./delete-batch.ts";
import { ThreadWakeUp } from "./thread-wake-up.ts";

/** A request to the storage thread. The first request is `open`. After `close`, the thread exits. */
export type StorageRequest =
  | { readonly kind: "open"; readonly options: DatabaseOptions }
  | { readonly kind: "deleteBatch"; readonly batch: DeleteBatch }
  | { readonly kind: "checkWrite" }
  | { readonly kind: "close" };

/**
 * A message from the storage thread. The thread replies to each request, and sends `upkeep` at any time. If the thread
 * has to check the file, it sends `checking` before the reply to `open`.
 */
export type StorageReply =
  | { readonly kind: "checking" }
  | { readonly kind: "open" }
  | { readonly kind: "not-open"; readonly message: string }
  | { readonly kind: "ran"; readonly result: BatchResult }
  | { readonly kind: "checked"; readonly problem: StoreProblem | undefined; readonly file: StoreFile }
  | { readonly kind: "upkeep"; readonly upkeep: Upkeep };

/** Sends a store's requests to the storage thread. The thread replies in the order of the requests. */
export class StorageThread {
  static #prestarted: StorageThread | undefined;

  readonly #worker: Worker;
  readonly #wakeUp = new ThreadWakeUp();
  readonly #waiting: PromiseWithResolvers<StorageReply>[] = [];
  readonly #exited = Promise.withResolvers<string>();
  /** Resolves to the reason once the thread has failed or exited. Never rejects. */
  readonly exited: Promise<string> = this.#exited.promise;
  readonly #hasExited = Promise.withResolvers<void>();
  readonly #checking = Promise.withResolvers<void>();
  #opened: Promise<void> = Promise.resolve();
  #file: StoreFile = { hasSecondName: false, areCheckpointsStalled: false };
  #onUpkeep: OnUpkeep | undefined;
  #exitReason: string | undefined;

  private constructor() {
    // The worker's module has the same extension as this module: `.ts` in the source, and `.js` in a build.
    const entry = new URL(`./worker${extname(import.meta.url)}`, import.meta.url);
    const { memory: workerData } = this.#wakeUp;
    // The thread does not inherit the Node.js options of the process, such as a profiler or a preloaded module.
    this.#worker = new Worker(entry, { workerData, name: "plant-storage", execArgv: [], env: threadEnvironment() });
    this.#worker.on("message", (reply: StorageReply) => {
      if (reply.kind === "upkeep") this.#onUpkeep?.(reply.upkeep);
      else if (reply.kind === "checking") this.#checking.resolve();
      else this.#waiting.shift()?.resolve(reply);
    });
    // The thread exits after every error, which closes the file. Only the first reason is used.
    this.#worker.on("error", (fault) => this.#onExit(`the storage thread failed: ${String(fault)}`));
    this.#worker.on("exit", () => {
      this.#onExit("the storage thread has exited");
      this.#hasExited.resolve();
    });
  }

  /**
   * Starts a thread for the next {@link StorageThread.start}, before the file is known. The thread needs 20 ms to
   * start, and meanwhile the main thread can continue. An unused thread does not keep the process running.
   */
  static prestart(): void {
    try {
      StorageThread.#prestarted = new StorageThread();
      StorageThread.#prestarted.#worker.unref();
    } catch {
      // The Node.js permissions may not allow threads. `start` then throws the error.
    }
  }

  /** Resolves when the thread has opened the file or begins to check it, see {@link opened}. @throws StoreOpenError */
  static async start(options: DatabaseOptions, onUpkeep?: OnUpkeep): Promise<StorageThread> {
    const thread = StorageThread.#prestarted ?? new StorageThread();
    StorageThread.#prestarted = undefined;
    thread.#worker.ref();
    thread.#onUpkeep = onUpkeep;
    thread.#opened = thread.#request({ kind: "open", options }).then((reply) => {
      if (reply.kind === "not-open") throw new StoreOpenError(reply.message);
    });
    await Promise.race([thread.#opened, thread.#checking.promise]);
    return thread;
  }

  /** Resolves once the file is open. Rejects with a StoreOpenError if the check finds a damaged file. */
  get opened(): Promise<void> {
    return this.#opened;
  }

  /** The file's state at the last {@link checkWrite}. */
  get file(): StoreFile {
    return this.#file;
  }

  /** Commits a batch. Rejects if the thread has exited, or exits before it replies. */
  async deleteBatch(batch: DeleteBatch): Promise<BatchResult> {
    const reply = await this.#request({ kind: "deleteBatch", batch });
    if (reply.kind !== "ran") throw unexpected(reply);
    return reply.result;
  }

  /** Returns why the file cannot be written, if there is a problem. Rejects if the thread exits before it replies. */
  async checkWrite(): Promise<StoreProblem | undefined> {
    const reply = await this.#request({ kind: "checkWrite" });
    if (reply.kind !== "checked") throw unexpected(reply);
    this.#file = reply.file;
    return reply.problem;
  }

  /** Closes the file. Resolves once the thread has exited, even if the thread has already failed. */
  async close(): Promise<void> {
    this.#send({ kind: "close" });
    await this.#hasExited.promise;
  }

  #request(message: StorageRequest): Promise<StorageReply> {
    if (this.#exitReason !== undefined) return Promise.reject(new Error(this.#exitReason));
    const reply = Promise.withResolvers<StorageReply>();
    this.#waiting.push(reply);
    this.#send(message);
    return reply.promise;
  }

  #send(message: StorageRequest): void {
    this.#worker.postMessage(message);
    this.#wakeUp.announce();
  }

  // Does not wait for the exit after an error, because a thread that hangs would block its callers.
  #onExit(reason: string): void {
    this.#exitReason ??= reason;
    this.#exited.resolve(reason);
    for (const reply of this.#waiting.splice(0)) reply.reject(new Error(reason));
  }
}

function unexpected({ kind }: StorageReply): Error {
  return new Error(`unexpected reply from the storage thread: ${kind}`);
}

// With the compile cache of the process, a thread that runs from source starts in half the time.
function threadEnvironment(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}
