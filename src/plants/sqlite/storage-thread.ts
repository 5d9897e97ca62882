import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { StoreOpenError } from "../errors.ts";
import type { StoreProblem } from "../health.ts";
import type { DatabaseOptions } from "./database.ts";
import { Doorbell } from "./doorbell.ts";
import type { BatchResult, DeleteBatch } from "./delete-batch.ts";
import type { Question, Reply, StorageThreadData } from "./worker-messages.ts";

/** The near end of the storage thread. Its caller asks one question at a time. */
export class StorageThread {
  readonly #worker: Worker;
  readonly #doorbell: Doorbell;
  readonly #end = Promise.withResolvers<string>();
  #reply = Promise.withResolvers<Reply>();
  #hasEnded = false;

  private constructor(worker: Worker, doorbell: Doorbell) {
    this.#worker = worker;
    this.#doorbell = doorbell;
    worker.on("message", (reply: Reply) => this.#reply.resolve(reply));
    // An exit follows every error, and only the first reason counts.
    worker.on("error", (fault) => this.#onEnd(`the storage thread failed: ${String(fault)}`));
    worker.on("exit", () => this.#onEnd("the storage thread has ended"));
  }

  /**
   * Starts the thread and waits until it has opened the file.
   *
   * @throws StoreOpenError naming the file and what is wrong with it
   */
  static async start(options: DatabaseOptions): Promise<StorageThread> {
    // Run from source the thread is TypeScript, built it is JavaScript: the same as this module.
    const entry = new URL(`./worker${extname(import.meta.url)}`, import.meta.url);
    const doorbell = new Doorbell();
    const workerData: StorageThreadData = { options, doorbell: doorbell.memory };
    // What the process was started with, on the command line or by NODE_OPTIONS, is not for this thread: a module to
    // be loaded first, a profiler.
    const worker = new Worker(entry, { workerData, name: "plant-storage", execArgv: [], env: {} });
    const thread = new StorageThread(worker, doorbell);
    const opened = await thread.#reply.promise;
    if (opened.kind === "not-open") throw new StoreOpenError(opened.message);
    return thread;
  }

  /** Resolves to the reason once the thread is gone. It never rejects. */
  get end(): Promise<string> {
    return this.#end.promise;
  }

  /** Commits a batch. Rejects when the thread ends before it has answered. */
  async deleteBatch(batch: DeleteBatch): Promise<BatchResult> {
    const reply = await this.#ask({ kind: "delete", batch });
    if (reply.kind !== "deleted") throw unexpected(reply);
    return reply.result;
  }

  /** Finds out whether the file can be written. Rejects when the thread ends before it has answered. */
  async tryToWrite(): Promise<StoreProblem | undefined> {
    const reply = await this.#ask({ kind: "try-to-write" });
    if (reply.kind !== "tried") throw unexpected(reply);
    return reply.problem;
  }

  /** Lets the thread close the file, and resolves once it is gone. */
  async close(): Promise<void> {
    this.#send({ kind: "close" });
    await this.#end.promise;
  }

  #ask(question: Question): Promise<Reply> {
    if (this.#hasEnded) return Promise.reject(new Error("the storage thread has ended"));
    this.#reply = Promise.withResolvers();
    this.#send(question);
    return this.#reply.promise;
  }

  #send(question: Question): void {
    this.#worker.postMessage(question);
    this.#doorbell.ring();
  }

  #onEnd(reason: string): void {
    this.#hasEnded = true;
    this.#end.resolve(reason);
    this.#reply.reject(new Error(reason));
  }
}

function unexpected(reply: Reply): Error {
  return new Error(`the storage thread answered another question: ${reply.kind}`);
}
