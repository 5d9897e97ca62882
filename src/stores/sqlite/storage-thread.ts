import { getCompileCacheDir } from "node:module";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { StoreFile } from "../../service/index.ts";
import type { StoreProblem } from "../contract/store-health.ts";
import { type OnUpkeep, StoreOpenError, type Upkeep } from "../contract/store-options.ts";
import type { DatabaseOptions } from "./database.ts";
import type { FileResult, BatchRow } from "./delete-batch.ts";

/** Maximum time for a reply to a check, in milliseconds. A slow disk or trigger takes a few seconds. */
export const replyTimeoutMs = 20_000;

const stalled: StoreProblem = { text: "the storage thread does not reply; the disk may hang", isTemporary: true };

/** A request to the storage thread: first to open a file, then batches, checks, and last `close`. */
export type StorageRequest = DatabaseOptions | readonly BatchRow[] | "check" | "close";

/** A reply. `refusal` is why the file could not be opened, and `file` is its state after a check. */
export interface StorageReply extends FileResult {
  readonly refusal?: string;
  readonly file?: StoreFile;
}

/** A message from the storage thread. `checking` precedes the first reply if the thread has to check the file. */
export type StorageMessage = StorageReply | "checking" | Upkeep;

/** Sends a store's requests to the storage thread. The thread replies in the order of the requests. */
export class StorageThread {
  static #prestarted: StorageThread | undefined;

  readonly #worker: Worker;
  readonly #waiting: ((reply: StorageReply) => void)[] = [];
  readonly #exited = Promise.withResolvers<string>();
  /** Resolves to the reason once the thread has failed or exited. Never rejects. */
  readonly exited: Promise<string> = this.#exited.promise;
  readonly #checking = Promise.withResolvers<void>();
  /** Resolves to a full disk's problem once the file is open. Rejects with a StoreOpenError for a damaged file. */
  opened: Promise<StoreProblem | undefined> = Promise.resolve(undefined);
  #onUpkeep: OnUpkeep | undefined;
  #exit: StoreProblem | undefined;
  /** Number of late replies to ignore. */
  #late = 0;
  #timer: NodeJS.Timeout | undefined;

  private constructor() {
    // The worker's module has the same extension as this module: `.ts` in the source, and `.js` in a build.
    const entry = new URL(`./worker${extname(import.meta.url)}`, import.meta.url);
    // With the compile cache of the process, a thread that runs from source starts in half the time.
    const folder = getCompileCacheDir();
    const env = folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
    // The thread does not inherit the Node.js options of the process, such as a profiler or a preloaded module.
    this.#worker = new Worker(entry, { name: "plant-storage", execArgv: [], env });
    this.#worker.on("message", (message: StorageMessage) => {
      if (message === "checking") this.#checking.resolve();
      else if ("kind" in message) this.#onUpkeep?.(message);
      else if (this.#late > 0) this.#onLate(message);
      else this.#waiting.shift()?.(message);
    });
    // The thread exits after every error, which closes the file. Only the first reason is used.
    this.#worker.on("error", (fault) => this.#onExit(`the storage thread failed: ${String(fault)}`));
    this.#worker.on("exit", () => this.#onExit("the storage thread has exited"));
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
    thread.opened = thread.request(options).then(({ refusal, problem }) => {
      if (refusal !== undefined) throw new StoreOpenError(refusal);
      if (problem?.isTemporary === false) throw new Error(problem.text);
      return problem;
    });
    await Promise.race([thread.opened, thread.#checking.promise]);
    return thread;
  }

  /** Resolves to the reply, which has only a problem if the thread has failed, or exits before it replies. */
  request(request: StorageRequest): Promise<StorageReply> {
    if (this.#exit !== undefined) return Promise.resolve({ outcomes: [], problem: this.#exit });
    this.#worker.postMessage(request);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves to the reply to a check. If it takes too long, resolves all requests with a problem. */
  async check(): Promise<StorageReply> {
    this.#timer = setTimeout(() => this.#abandon(stalled), replyTimeoutMs).unref();
    const reply = await this.request("check");
    clearTimeout(this.#timer);
    return reply;
  }

  /** Ignores a late reply, except for a problem that only a restart fixes, such as a failed fsync. */
  #onLate({ problem }: StorageReply): void {
    this.#late--;
    if (problem?.isTemporary === false) this.#abandon((this.#exit ??= problem));
  }

  #abandon(problem: StoreProblem): void {
    this.#late += this.#waiting.length;
    for (const reply of this.#waiting.splice(0)) reply({ outcomes: [], problem });
  }

  /** Closes the file. Resolves to its problem once the thread has exited, even if the thread has already failed. */
  async close(): Promise<StoreProblem | undefined> {
    clearTimeout(this.#timer);
    const reply = this.request("close");
    // A thread that has failed may still run.
    if (this.#exit !== undefined) this.#worker.postMessage("close");
    // Node.js sets the thread id to -1 when the thread exits.
    if (this.#worker.threadId !== -1) await new Promise((resolve) => this.#worker.once("exit", resolve));
    return (await reply).problem;
  }

  // Does not wait for the exit after an error, because a thread that hangs would block its callers.
  #onExit(text: string): void {
    this.#exit ??= { text, isTemporary: false };
    this.#exited.resolve(text);
    this.#abandon(this.#exit);
  }
}
