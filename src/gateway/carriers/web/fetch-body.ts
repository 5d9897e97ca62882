import { goneAway, CollectedBytes } from "../index.ts";

/**
 * The body of a `Request`, read as it arrives.
 *
 * It is never cancelled: some servers take that for the end of the connection, and the answer would be lost. What is
 * not read is left to the server, as any Fetch handler may leave it.
 */
export class FetchBody {
  readonly #body: ReadableStream<Uint8Array> | null;
  readonly #brokenOff: () => void;
  #abandoned = false;
  #stopWaiting: ((reason: unknown) => void) | undefined;

  /** @param brokenOff - called if the body breaks off while it is being read, before that read fails */
  constructor(body: ReadableStream<Uint8Array> | null, brokenOff: () => void) {
    this.#body = body;
    this.#brokenOff = brokenOff;
  }

  /** Reads the whole body. Returns `undefined` as soon as it exceeds `limitBytes`; rejects if it breaks off. */
  async read(limitBytes: number): Promise<Uint8Array | undefined> {
    // A body in one piece is not copied; several pieces are, so that none of them is kept.
    let first: Uint8Array | undefined;
    let whole: CollectedBytes | undefined;
    for await (const piece of this.pieces()) {
      if (first === undefined) first = piece;
      else {
        if (whole === undefined) (whole = new CollectedBytes(0, limitBytes)).add(first);
        whole.add(piece);
      }
      if ((whole ?? first).byteLength > limitBytes) return undefined;
    }
    return whole?.bytes ?? first ?? new Uint8Array(0);
  }

  /** Returns the pieces as they arrive, with back-pressure. Iteration throws if the body breaks off or is abandoned. */
  async *pieces(): AsyncGenerator<Uint8Array> {
    const reader = this.#body?.getReader();
    if (reader === undefined) return;
    try {
      for (;;) {
        const { done, value } = await this.#next(reader);
        if (done) return;
        yield value;
      }
    } finally {
      reader.releaseLock();
    }
  }

  /** Makes every read of it fail, the current and any later one. */
  abandon(): void {
    this.#abandoned = true;
    this.#stopWaiting?.(goneAway());
  }

  // Not Promise.race, which would keep every piece alive until the body is abandoned.
  #next(reader: ReadableStreamDefaultReader<Uint8Array>): ReturnType<typeof reader.read> {
    if (this.#abandoned) return Promise.reject(goneAway());
    return new Promise((resolve, reject) => {
      this.#stopWaiting = reject;
      // Whatever the cause, to us its sender has gone away.
      const breakOff = (): void => {
        if (!this.#abandoned) this.#brokenOff();
        reject(goneAway());
      };
      // A program may make a body of chunks that are not bytes.
      reader
        .read()
        .then((read) => (read.done || read.value instanceof Uint8Array ? resolve(read) : breakOff()), breakOff);
    });
  }
}
