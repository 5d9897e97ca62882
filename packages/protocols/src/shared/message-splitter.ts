import { HttpProblem } from "@plantstore/http";
import { httpError } from "./http-error.ts";

/** Splits a body's pieces into its messages. */
export interface MessageSplitter<T> {
  /** Adds the next piece. All complete messages must have been taken before. */
  add(piece: Uint8Array): void;
  /** Returns the next message, in a promise if it must be decompressed, or `undefined` if it is incomplete. */
  take(): T | Promise<T> | undefined;
  /** Returns a complete body's last message, or `undefined` if there are no more. */
  end(): T | undefined;
}

/** Reads a body's messages as they arrive. Throws what the splitter throws, or why the body was aborted. */
export function readMessages<T>(pieces: AsyncIterable<Uint8Array>, splitter: MessageSplitter<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => new MessageIterator(pieces[Symbol.asyncIterator](), splitter) };
}

// Replaces an async generator, which would need three microtask queue turns per message instead of one and
// double a small message's cost.
class MessageIterator<T> implements AsyncIterator<T> {
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #splitter: MessageSplitter<T>;
  /** The last pending step. */
  #pending: Promise<unknown> | undefined;
  #isDone = false;

  constructor(pieces: AsyncIterator<Uint8Array>, splitter: MessageSplitter<T>) {
    this.#pieces = pieces;
    this.#splitter = splitter;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#pending !== undefined) return this.#enqueue(() => this.#read(undefined));
    if (this.#isDone) return Promise.resolve(done);
    try {
      const message = this.#splitter.take();
      if (message === undefined || message instanceof Promise) return this.#enqueue(() => this.#read(message));
      return Promise.resolve({ done: false, value: message });
    } catch (error) {
      return this.#enqueue(() => this.#fail(error));
    }
  }

  return(): Promise<IteratorResult<T>> {
    return this.#enqueue(() => this.#end());
  }

  async #read(next: T | Promise<T> | undefined): Promise<IteratorResult<T>> {
    if (this.#isDone) return done;
    try {
      for (let found = next ?? this.#splitter.take(); ; found = this.#splitter.take()) {
        if (found !== undefined) return { done: false, value: await found };
        const piece = await this.#pieces.next();
        if (piece.done === true) break;
        this.#splitter.add(piece.value);
      }
      this.#isDone = true;
      const last = this.#splitter.end();
      return last === undefined ? done : { done: false, value: last };
    } catch (error) {
      return await this.#fail(error);
    }
  }

  async #end(): Promise<IteratorResult<T>> {
    this.#isDone = true;
    await this.#pieces.return?.();
    return done;
  }

  async #fail(error: unknown): Promise<never> {
    await this.#end();
    throw error instanceof HttpProblem ? httpError(error) : error;
  }

  /** Runs a step after the previous steps, as an async generator does for callers that do not await. */
  #enqueue(step: () => Promise<IteratorResult<T>>): Promise<IteratorResult<T>> {
    const result = this.#pending === undefined ? step() : this.#pending.then(step, step);
    const settle = (): void => {
      if (this.#pending === result) this.#pending = undefined;
    };
    this.#pending = result;
    result.then(settle, settle);
    return result;
  }
}

const done: IteratorReturnResult<undefined> = { done: true, value: undefined };
