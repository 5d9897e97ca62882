import { getCompileCacheDir } from "node:module";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { StoreOpenError } from "../store-open-error.ts";
import type { OnUpkeep } from "../upkeep.ts";
import type { DatabaseOptions } from "./database.ts";
import { ThreadWakeUp } from "./thread-wake-up.ts";
import type { Question, Reply } from "./storage-messages.ts";
import type { StorageWork } from "./worker.ts";

/** A caller that waits for a reply. Which result it has is known by the question. */
type Waiting = Pick<PromiseWithResolvers<Reply<never>>, "resolve" | "reject">;

/** The storage thread as seen by the store. It replies to questions in their order. */
export class StorageThread {
  /** The next one that opens a file. */
  static #begun: StorageThread | undefined;

  readonly #worker: Worker;
  readonly #wakeUp = new ThreadWakeUp();
  readonly #end = Promise.withResolvers<string>();
  /** The callers that wait for a reply, in the order of their questions. */
  readonly #waiting: Waiting[] = [];
  readonly #checking = Promise.withResolvers<void>();
  #opened: Promise<void> = Promise.resolve();
  #onUpkeep: OnUpkeep | undefined;
  #endReason: string | undefined;

  private constructor() {
    // From source the thread is TypeScript, in a build it is JavaScript, just like this module.
    const entry = new URL(`./worker${extname(import.meta.url)}`, import.meta.url);
    const { memory: workerData } = this.#wakeUp;
    // Options of the process, such as a profiler or a module to preload, do not apply to this thread.
    this.#worker = new Worker(entry, { workerData, name: "plant-storage", execArgv: [], env: threadEnvironment() });
    this.#worker.on("message", (reply: Reply<never>) => {
      if (reply.kind === "upkeep") this.#onUpkeep?.(reply.upkeep);
      else if (reply.kind === "checking") this.#checking.resolve();
      else this.#waiting.shift()?.resolve(reply);
    });
    // Every error is followed by an exit, and only the first reason counts.
    this.#worker.on("error", (fault) => this.#onEnd(`the storage thread failed: ${String(fault)}`));
    this.#worker.on("exit", () => this.#onEnd("the storage thread has exited"));
  }

  /**
   * Begins a thread before it is known which file it opens, for the next {@link StorageThread.start}: it takes 20 ms, in
   * which this one can do something else. It ends with the process if there is none.
   */
  static begin(): void {
    try {
      StorageThread.#begun = new StorageThread();
    } catch {
      // Such as where node's permissions allow no thread: whoever starts one is told.
      return;
    }
    StorageThread.#begun.#worker.unref();
  }

  /**
   * Starts the thread and waits until it has opened the file, or has begun to check it: see {@link opened}.
   *
   * @throws StoreOpenError naming the file and what is wrong with it
   */
  static async start(options: DatabaseOptions, onUpkeep?: OnUpkeep): Promise<StorageThread> {
    const thread = StorageThread.#begun ?? new StorageThread();
    StorageThread.#begun = undefined;
    thread.#worker.ref();
    thread.#onUpkeep = onUpkeep;
    thread.#opened = thread.#open(options);
    await Promise.race([thread.#opened, thread.#checking.promise]);
    return thread;
  }

  /** Resolves once the file is open; rejects with a StoreOpenError when its check finds it damaged. */
  get opened(): Promise<void> {
    return this.#opened;
  }

  /** Resolves to the reason once the thread has ended. Never rejects. */
  get end(): Promise<string> {
    return this.#end.promise;
  }

  /** Has the thread do something. Rejects when the thread ends before it has replied. */
  async ask<Kind extends keyof StorageWork>(
    question: Question<StorageWork> & { readonly kind: Kind },
  ): Promise<ReturnType<StorageWork[Kind]>> {
    const reply = await this.#ask<ReturnType<StorageWork[Kind]>>(question);
    if (reply.kind !== "done") throw new Error(`unexpected reply from the storage thread: ${reply.kind}`);
    return reply.result;
  }

  /** Has the thread close the file, and resolves once it has ended. */
  async close(): Promise<void> {
    this.#send({ kind: "close" });
    await this.#end.promise;
  }

  async #open(options: DatabaseOptions): Promise<void> {
    const opened = await this.#ask({ kind: "open", options });
    if (opened.kind === "not-open") throw new StoreOpenError(opened.message);
  }

  #ask<Result>(question: Question<StorageWork>): Promise<Reply<Result>> {
    if (this.#endReason !== undefined) return Promise.reject(new Error(this.#endReason));
    const reply = Promise.withResolvers<Reply<Result>>();
    this.#waiting.push(reply);
    this.#send(question);
    return reply.promise;
  }

  #send(question: Question<StorageWork>): void {
    this.#worker.postMessage(question);
    this.#wakeUp.announce();
  }

  #onEnd(reason: string): void {
    this.#endReason ??= reason;
    this.#end.resolve(reason);
    for (const reply of this.#waiting.splice(0)) reply.reject(new Error(reason));
  }
}

/**
 * Returns an environment with nothing but the folder in which the process keeps compiled code, if it does: the thread
 * starts from source in half of the time.
 */
function threadEnvironment(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}
