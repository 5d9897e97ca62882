import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import type { Question } from "./worker-messages.ts";

/**
 * Wakes the storage thread. It does nothing but answer, so it sleeps at the bell instead of in an event loop:
 * a question and its answer then cost half as much.
 */
export class Doorbell {
  /** Shared by both threads: how often it was rung, modulo 2^32. */
  readonly #rings: Int32Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.#rings = new Int32Array(memory);
  }

  /** What the other thread makes its end of. */
  get memory(): SharedArrayBuffer {
    return this.#rings.buffer;
  }

  /** Rings, after a question was posted. */
  ring(): void {
    Atomics.add(this.#rings, 0, 1);
    Atomics.notify(this.#rings, 0);
  }

  /**
   * The next question; sleeps until it comes.
   *
   * @param timeoutMs - how long it sleeps at most
   * @param awakeMs - how long it stays awake before: to be woken takes 30 µs, and longer to be quick again
   * @returns `undefined` when nothing has come
   */
  nextQuestion(port: MessagePort, timeoutMs: number, awakeMs = 0): Question | undefined {
    // Read before the look: who rings in between is not slept through.
    const rings = Atomics.load(this.#rings, 0);
    const waiting = receiveMessageOnPort(port);
    if (waiting !== undefined) return waiting.message;
    if (awakeMs > 0) this.#stayAwake(rings, awakeMs);
    Atomics.wait(this.#rings, 0, rings, timeoutMs);
    return receiveMessageOnPort(port)?.message;
  }

  #stayAwake(rings: number, awakeMs: number): void {
    const until = performance.now() + awakeMs;
    while (Atomics.load(this.#rings, 0) === rings && performance.now() < until);
  }
}
