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

/** A request to the storage thread. The first one is `open`. After `close` the thread exits. */
export type StorageRequest =
  | { readonly kind: "open"; readonly options: DatabaseOptions }
  | { readonly kind: "deleteBatch"; readonly batch: DeleteBatch }
  /** Checks whether the file can be written. */
  | { readonly kind: "checkWrite" }
  | { readonly kind: "close" };

/**
 * The thread's messages: a reply to each request, upkeep at any time, and `checking` before the reply to `open` if the
 * thread has to check the file.
 */
export type StorageReply =
  | { readonly kind: "checking" }
  | { readonly kind: "open" }
  | { readonly kind: "not-open"; readonly message: string }
  | { readonly kind: "ran"; readonly result: BatchResult }
  | { readonly kind: "checked"; readonly problem: StoreProblem | undefined; readonly file: StoreFile }
  | { readonly kind: "upkeep"; readonly upkeep: Upkeep };

/** The store's interface to the storage thread, which replies to requests in order. */
export class StorageThread {
  /** The thread that was started before its file was known. */
  static #prestarted: StorageThread | undefined;

  readonly #worker: Worker;
  readonly #wakeUp = new ThreadWakeUp();
  readonly #exited = Promise.withResolvers<string>();
  /** Resolves once the thread no longer has the file open. */
  readonly #hasExited = Promise.withResolvers<void>();
  /** The callers that wait for a reply, in request order. */
  readonly #waiting: PromiseWithResolvers<StorageReply>[] = [];
  readonly #checking = Promise.withResolvers<void>();
  #opened: Promise<void> = Promise.resolve();
  #onUpkeep: OnUpkeep | undefined;
  #exitReason: string | undefined;
  #file: StoreFile = { hasSecondName: false, areCheckpointsStalled: false };

  private constructor() {
    // From source the thread is TypeScript, in a build it is JavaScript, just like this module.
    const entry = new URL(`./worker${extname(import.meta.url)}`, import.meta.url);
    const { memory: workerData } = this.#wakeUp;
    // The process's options, such as a profiler or a module to preload, do not apply to this thread.
    this.#worker = new Worker(entry, { workerData, name: "plant-storage", execArgv: [], env: threadEnvironment() });
    this.#worker.on("message", (reply: StorageReply) => {
      if (reply.kind === "upkeep") this.#onUpkeep?.(reply.upkeep);
      else if (reply.kind === "checking") this.#checking.resolve();
      else this.#waiting.shift()?.resolve(reply);
    });
    // Every error is followed by an exit, which closes the file. Only the first reason is used.
    this.#worker.on("error", (fault) => this.#onExit(`the storage thread failed: ${String(fault)}`));
    this.#worker.on("exit", () => {
      this.#onExit("the storage thread has exited");
      this.#hasExited.resolve();
    });
  }

  /**
   * Starts a thread before its file is known, for the next {@link StorageThread.start}. Starting takes 20 ms, during
   * which the main thread can do something else. An unused thread does not keep the process running.
   */
  static prestart(): void {
    try {
      StorageThread.#prestarted = new StorageThread();
    } catch {
      // For example, the permissions of Node.js do not allow threads. `start` will then throw.
      return;
    }
    StorageThread.#prestarted.#worker.unref();
  }

  /**
   * Starts the thread and waits until it has opened the file, or has begun to check it: see {@link opened}.
   *
   * @throws StoreOpenError that names the file and the problem
   */
  static async start(options: DatabaseOptions, onUpkeep?: OnUpkeep): Promise<StorageThread> {
    const thread = StorageThread.#prestarted ?? new StorageThread();
    StorageThread.#prestarted = undefined;
    thread.#worker.ref();
    thread.#onUpkeep = onUpkeep;
    thread.#opened = thread.#open(options);
    await Promise.race([thread.#opened, thread.#checking.promise]);
    return thread;
  }

  /** Resolves once the file is open. Rejects with a StoreOpenError when its check finds it damaged. */
  get opened(): Promise<void> {
    return this.#opened;
  }

  /** Resolves to the reason once the thread has failed or exited. Never rejects. */
  get exited(): Promise<string> {
    return this.#exited.promise;
  }

  /** The file's state at the last {@link checkWrite}. */
  get file(): StoreFile {
    return this.#file;
  }

  /** Commits a batch. Rejects when the thread exits before it has replied, or has exited before. */
  async deleteBatch(batch: DeleteBatch): Promise<BatchResult> {
    const reply = await this.#request({ kind: "deleteBatch", batch });
    if (reply.kind !== "ran") throw unexpected(reply);
    return reply.result;
  }

  /** Returns why the file cannot be written. Rejects when the thread exits before it has replied. */
  async checkWrite(): Promise<StoreProblem | undefined> {
    const reply = await this.#request({ kind: "checkWrite" });
    if (reply.kind !== "checked") throw unexpected(reply);
    this.#file = reply.file;
    return reply.problem;
  }

  /** Closes the file, and resolves once the thread has exited, even if it failed before. */
  async close(): Promise<void> {
    this.#send({ kind: "close" });
    await this.#hasExited.promise;
  }

  async #open(options: DatabaseOptions): Promise<void> {
    const opened = await this.#request({ kind: "open", options });
    if (opened.kind === "not-open") throw new StoreOpenError(opened.message);
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

  #onExit(reason: string): void {
    this.#exitReason ??= reason;
    this.#exited.resolve(reason);
    for (const reply of this.#waiting.splice(0)) reply.reject(new Error(reason));
  }
}

function unexpected({ kind }: StorageReply): Error {
  return new Error(`unexpected reply from the storage thread: ${kind}`);
}

/**
 * Returns an environment that contains only the process's compile cache, if it has one. With the cache, a thread that
 * runs from source starts in half the time.
 */
function threadEnvironment(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}
