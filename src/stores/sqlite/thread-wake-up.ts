import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";

/** A received request. */
type Received = NonNullable<ReturnType<typeof receiveMessageOnPort>>;

/**
 * Wakes the storage thread. The thread does not use its event loop: it only replies to requests, and sleeps on shared
 * memory between them, which halves the cost of a request and its reply.
 */
export class ThreadWakeUp {
  /** Shared by both threads: the number of announced requests, modulo 2^32. */
  readonly #announced: Int32Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.#announced = new Int32Array(memory);
  }

  /** The memory from which the other thread creates its own {@link ThreadWakeUp}. */
  get memory(): SharedArrayBuffer {
    return this.#announced.buffer;
  }

  /** Announces a request that has been posted. */
  announce(): void {
    // equivalent mutant: the order of these matters only if the other thread runs between them.
    Atomics.add(this.#announced, 0, 1);
    Atomics.notify(this.#announced, 0);
  }

  /**
   * Returns the next request; sleeps until it arrives.
   *
   * @param timeoutMs - how long to sleep at most; if negative, it does not sleep
   * @param spinMs - how long to spin before that: waking up takes 30 µs, and the thread is slow for a while afterwards
   * @returns `undefined` when no request arrived
   */
  nextRequest(port: MessagePort, timeoutMs: number, spinMs = 0): Received | undefined {
    // Read before the port is checked, so that a request announced in between is not missed.
    const announced = Atomics.load(this.#announced, 0);
    const waiting = receiveMessageOnPort(port);
    if (waiting !== undefined) return waiting;
    if (timeoutMs >= 0 && spinMs > 0) this.#spin(announced, spinMs);
    Atomics.wait(this.#announced, 0, announced, timeoutMs);
    return receiveMessageOnPort(port);
  }

  #spin(announced: number, spinMs: number): void {
    const deadlineMs = performance.now() + spinMs;
    while (Atomics.load(this.#announced, 0) === announced && performance.now() < deadlineMs);
  }
}
