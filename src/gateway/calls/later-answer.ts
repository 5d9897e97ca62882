import type { Message } from "@bufbuild/protobuf";

/** Receives the answer of a handler. */
export interface AnswerTaker {
  /** Takes the message. Never throws. */
  take(message: Message): void;
  /** Takes what went wrong instead. Never throws. */
  takeError(thrown: unknown): void;
}

/**
 * The answer of a handler that comes later. Its call takes it by {@link LaterAnswer.tell}, in the turn in which it
 * comes and without the memory of a promise; interceptors, and anybody else, use it as a promise.
 */
export class LaterAnswer implements Promise<Message> {
  #taker: AnswerTaker | undefined;
  /** What came before there was anybody to take it. */
  #early: ((taker: AnswerTaker) => void) | undefined;
  #promise: Promise<Message> | undefined;

  get [Symbol.toStringTag](): string {
    return "Promise";
  }

  /** Passes the answer on to one taker, at once if it has come already. Not for one that is used as a promise, too. */
  tell(taker: AnswerTaker): void {
    this.#taker = taker;
    this.#early?.(taker);
  }

  /** Answers with a message. Called once, unless {@link fail} is. */
  succeed(message: Message): void {
    if (this.#taker !== undefined) this.#taker.take(message);
    else this.#early = (taker) => taker.take(message);
  }

  /** Fails instead. */
  fail(thrown: unknown): void {
    if (this.#taker !== undefined) this.#taker.takeError(thrown);
    else this.#early = (taker) => taker.takeError(thrown);
  }

  // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
  then<T = Message, E = never>(
    onFulfilled?: ((message: Message) => T | PromiseLike<T>) | null,
    onRejected?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<T | E> {
    return this.#promised.then(onFulfilled, onRejected);
  }

  catch<E = never>(onRejected?: ((reason: unknown) => E | PromiseLike<E>) | null): Promise<Message | E> {
    return this.#promised.catch(onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<Message> {
    return this.#promised.finally(onFinally);
  }

  get #promised(): Promise<Message> {
    return (this.#promise ??= new Promise((take, takeError) => this.tell({ take, takeError })));
  }
}
