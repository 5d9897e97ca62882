import { HttpProblem } from "../../exchange/index.ts";
import { httpError } from "./http-error.ts";

/** Splits the pieces of a body into its messages. */
export interface MessageSplitter<T> {
  /** Adds the next piece. Every message that was complete must have been taken. */
  add(piece: Uint8Array): void;
  /** Returns the next message, in a promise if it must be decompressed; `undefined` until all of it has arrived. */
  take(): T | Promise<T> | undefined;
  /** Returns the last message of a body that has ended; `undefined` if there is none left. */
  end(): T | undefined;
}

/** Reads the messages of a body as they arrive. Throws what the splitter throws, or why the body broke off. */
export function readMessages<T>(pieces: AsyncIterable<Uint8Array>, splitter: MessageSplitter<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => new MessageIterator(pieces[Symbol.asyncIterator](), splitter) };
}

// Not an async generator: that takes three turns of the microtask queue for each message instead of one, which doubles
// the cost of a small message.
class MessageIterator<T> implements AsyncIterator<T> {
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #splitter: MessageSplitter<T>;
  /** The last step that is not done yet. */
  #waiting: Promise<unknown> | undefined;
  #ended = false;

  constructor(pieces: AsyncIterator<Uint8Array>, splitter: MessageSplitter<T>) {
    this.#pieces = pieces;
    this.#splitter = splitter;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#waiting !== undefined) return this.#wait(() => this.#read(undefined));
    if (this.#ended) return Promise.resolve(done);
    try {
      const message = this.#splitter.take();
      if (message === undefined || message instanceof Promise) return this.#wait(() => this.#read(message));
      return Promise.resolve({ done: false, value: message });
    } catch (error) {
      return this.#wait(() => this.#fail(error));
    }
  }

  return(): Promise<IteratorResult<T>> {
    return this.#wait(() => this.#end());
  }

  async #read(taken: T | Promise<T> | undefined): Promise<IteratorResult<T>> {
    if (this.#ended) return done;
    try {
      for (let found = taken ?? this.#splitter.take(); ; found = this.#splitter.take()) {
        if (found !== undefined) return { done: false, value: await found };
        const piece = await this.#pieces.next();
        if (piece.done === true) break;
        this.#splitter.add(piece.value);
      }
      this.#ended = true;
      const last = this.#splitter.end();
      return last === undefined ? done : { done: false, value: last };
    } catch (error) {
      return await this.#fail(error);
    }
  }

  async #end(): Promise<IteratorResult<T>> {
    this.#ended = true;
    await this.#pieces.return?.();
    return done;
  }

  async #fail(error: unknown): Promise<never> {
    await this.#end();
    throw error instanceof HttpProblem ? httpError(error) : error;
  }

  /** Runs a step once the steps before it are done, as an async generator does for callers that do not wait. */
  #wait(step: () => Promise<IteratorResult<T>>): Promise<IteratorResult<T>> {
    const result = this.#waiting === undefined ? step() : this.#waiting.then(step, step);
    const settle = (): void => {
      if (this.#waiting === result) this.#waiting = undefined;
    };
    this.#waiting = result;
    result.then(settle, settle);
    return result;
  }
}

const done: IteratorReturnResult<undefined> = { done: true, value: undefined };
