import type { Readable } from "node:stream";
import type { ConnectError } from "@connectrpc/connect";
import { goneAway } from "../index.ts";

/**
 * Reads the body of one of node's requests as it arrives, with back-pressure. Does not destroy it at the end: node
 * would destroy the connection as well, and the answer is still to come.
 */
export class PieceReader implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #isCut = false;
  #interrupt: (reason: ConnectError) => void = ignore;

  constructor(body: Readable) {
    this.#pieces = body.iterator({ destroyOnReturn: false });
  }

  /** Drops the rest. Reading then fails, so that what was read is not taken for the whole body. */
  cut(): void {
    this.#isCut = true;
    this.#interrupt(goneAway());
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#isCut) return Promise.reject(goneAway());
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      this.#pieces.next().then(resolve, reject);
    });
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    await this.#pieces.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function ignore(): void {}

/** Drops what is left of a request body as it arrives. */
export function dropRest(body: Readable): void {
  // With a listener for `readable`, node would read on only when an iterator asks for more.
  body.removeAllListeners("readable").resume();
}
