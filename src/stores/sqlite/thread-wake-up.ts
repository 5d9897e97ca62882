import { availableParallelism } from "node:os";
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";

type Received = NonNullable<ReturnType<typeof receiveMessageOnPort>>;

/**
 * How long the thread spins for the next request, in milliseconds. If a caller deletes one plant after another, the
 * next request arrives after about 0.1 ms. The time is 0 on a single core, where spinning would delay the response.
 */
export const spinMsMax: number = availableParallelism() > 1 ? 0.15 : 0;

// Maximum time between a reply and the next request of a fast caller, in milliseconds. Includes the thread's wake-up.
const soonMs = 0.2;

/**
 * Returns how long to spin after a request, in milliseconds. A fast caller then does not wait for the thread to wake
 * up. For slower callers, spinning would double the cost of a deletion without a benefit.
 *
 * @param isSingle - whether the request was a single deletion
 * @param sinceReplyMs - the time between the previous reply and the request, in milliseconds
 */
export function spinMsAfter(isSingle: boolean, sinceReplyMs: number): number {
  return isSingle && sinceReplyMs < soonMs ? spinMsMax : 0;
}

/**
 * Wakes the storage thread when a request arrives. The thread does not use its event loop, because it only replies to
 * requests. Between requests, the thread sleeps on shared memory, which halves the cost per request.
 */
export class ThreadWakeUp {
  /** The shared memory. The other thread creates its {@link ThreadWakeUp} with this memory. */
  readonly memory: SharedArrayBuffer;
  /** The number of announced requests, modulo 2^32. Both threads share this memory. */
  readonly #announced: Int32Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#announced = new Int32Array(memory);
  }

  announce(): void {
    // equivalent mutant: the order of the calls matters only if the other thread runs between the two calls.
    Atomics.add(this.#announced, 0, 1);
    Atomics.notify(this.#announced, 0);
  }

  /**
   * Returns the next request. Sleeps until a request arrives.
   *
   * @param timeoutMs - the maximum time to sleep, in milliseconds. Does not sleep if the timeout is negative
   * @param spinMs - how long to spin before sleeping. Waking up takes 30 µs, and then the thread is slow for a while
   * @returns `undefined` if no request arrived
   */
  nextRequest(port: MessagePort, timeoutMs: number, spinMs = 0): Received | undefined {
    // Reads the counter before the port. Otherwise a request that is announced between the two reads would be missed.
    const announced = Atomics.load(this.#announced, 0);
    const waiting = receiveMessageOnPort(port);
    if (waiting !== undefined) return waiting;
    if (timeoutMs >= 0 && spinMs > 0) {
      const deadlineMs = performance.now() + spinMs;
      while (Atomics.load(this.#announced, 0) === announced && performance.now() < deadlineMs);
    }
    Atomics.wait(this.#announced, 0, announced, timeoutMs);
    return receiveMessageOnPort(port);
  }
}
