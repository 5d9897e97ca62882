import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";

/** A question as it arrived. */
type Received = NonNullable<ReturnType<typeof receiveMessageOnPort>>;

/**
 * Wakes the storage thread. It has no event loop: all it does is answer questions, and between them it sleeps on shared
 * memory. That halves the cost of a question and its reply.
 */
export class ThreadWakeUp {
  /** Shared by both threads: the number of announced questions, modulo 2^32. */
  readonly #announced: Int32Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.#announced = new Int32Array(memory);
  }

  /** The memory from which the other thread creates its own {@link ThreadWakeUp}. */
  get memory(): SharedArrayBuffer {
    return this.#announced.buffer;
  }

  /** Announces a question that has been posted. */
  announce(): void {
    // No test can tell: the other thread sleeps on after a call that comes before the number only if it looks between.
    Atomics.add(this.#announced, 0, 1);
    Atomics.notify(this.#announced, 0);
  }

  /**
   * Returns the next question; sleeps until it arrives.
   *
   * @param timeoutMs - how long to sleep at most; not at all if it is negative
   * @param awakeMs - how long to stay awake before that: waking up takes 30 µs, and the thread is slow for a while
   * after
   * @returns `undefined` when no question arrived
   */
  nextQuestion(port: MessagePort, timeoutMs: number, awakeMs = 0): Received | undefined {
    // Read before the port is checked, so that a question announced in between is not missed.
    const announced = Atomics.load(this.#announced, 0);
    const waiting = receiveMessageOnPort(port);
    if (waiting !== undefined) return waiting;
    if (timeoutMs >= 0 && awakeMs > 0) this.#stayAwake(announced, awakeMs);
    Atomics.wait(this.#announced, 0, announced, timeoutMs);
    return receiveMessageOnPort(port);
  }

  #stayAwake(announced: number, awakeMs: number): void {
    const until = performance.now() + awakeMs;
    while (Atomics.load(this.#announced, 0) === announced && performance.now() < until);
  }
}
