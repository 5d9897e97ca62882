import { HttpProblem } from "../../http/index.ts";
import { httpError } from "../http-error.ts";

/** Splits a body's pieces into its messages. */
export interface MessageSplitter<T> {
  /** Adds the next piece. All complete messages from earlier pieces must have been taken. */
  add(piece: Uint8Array): void;
  /** Returns the next message, a promise to decompress it, or `undefined` if the message is incomplete. */
  take(): T | Promise<T> | undefined;
  /** Returns the last message of a body that has ended, or `undefined` if there are no more messages. */
  end(): T | undefined;
}

/** Reads a body's messages as they arrive. Throws the splitter's errors, or the reason why the body was aborted. */
export function readMessages<T>(pieces: AsyncIterable<Uint8Array>, splitter: MessageSplitter<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => new MessageIterator(pieces[Symbol.asyncIterator](), splitter) };
}

// An async generator would need three turns of the microtask queue per message instead of one turn, and would double
// the cost of a small message.
class MessageIterator<T> implements AsyncIterator<T> {
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #splitter: MessageSplitter<T>;
  /** The result of the last queued read or close, or `undefined` if none is pending. */
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

  /** Runs a read or close after the pending ones, because callers may call `next` again without awaiting the result. */
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
