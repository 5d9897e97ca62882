import { availableParallelism } from "node:os";
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";

/** A received request. */
type Received = NonNullable<ReturnType<typeof receiveMessageOnPort>>;

/**
 * How long the thread spins for the next request, in milliseconds. If a caller deletes one plant after another, the
 * request arrives after about 0.1 ms. Zero on a single core, where spinning would delay the response.
 */
export const spinMsMax: number = availableParallelism() > 1 ? 0.15 : 0;

// How late a request is that was not awaited by spinning, which is received once the thread has woken up.
const soonMs = 0.2;

/**
 * Returns how long to spin after a request, in milliseconds, so that the caller does not wait for the thread to wake
 * up. For slower callers, spinning would cost as much as the deletion without any gain.
 *
 * @param isSingle - whether the request was a single deletion
 * @param sinceReplyMs - how long after the previous reply it was received
 */
export function spinMsAfter(isSingle: boolean, sinceReplyMs: number): number {
  return isSingle && sinceReplyMs < soonMs ? spinMsMax : 0;
}

/**
 * Wakes the storage thread. The thread does not use its event loop, because it only replies to requests, and sleeps on
 * shared memory between them, which halves what a request and its reply cost.
 */
export class ThreadWakeUp {
  /** Shared by both threads: how many requests were announced, modulo 2^32. */
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
    // equivalent mutant: their order matters only if the other thread runs between them.
    Atomics.add(this.#announced, 0, 1);
    Atomics.notify(this.#announced, 0);
  }

  /**
   * Returns the next request. Sleeps until it arrives.
   *
   * @param timeoutMs - how long to sleep at most. If negative, it does not sleep
   * @param spinMs - how long to spin before that, because waking up takes 30 µs, and the thread is slow for a while
   * afterwards
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
