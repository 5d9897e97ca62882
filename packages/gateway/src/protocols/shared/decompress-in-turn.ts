import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "../../exchange/index.ts";
import { decodesPieces } from "./compression.ts";
import { goneAway } from "./http-error.ts";

/**
 * Bytes that a message may decode to for each byte that came, or else it waits for the others of its kind.
 *
 * Text seldom gets to a fifth of it, and what decodes to so much per byte costs no more than other bytes that are sent.
 */
const usualRatioMax = 100;

/** Bytes that any message may decode to without waiting for those of a higher ratio. */
const smallBytesMax = 64 * 1024;

/** A number of messages that are decompressed at once; the others wait, the first of them for the first that is done. */
class Lane {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnceMax: number) {
    this.#free = atOnceMax;
  }

  get hasRoom(): boolean {
    return this.#free > 0;
  }

  async run(decompress: () => Promise<Uint8Array>): Promise<Uint8Array> {
    // Whoever is done passes its place on.
    if (this.hasRoom) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await decompress();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

// Both over all gateways of this copy of the code. Each message may take a window of 8 MiB, or 16 where a message may
// be larger than 8, and twice its length while it is put together. Node's threads serve all that they are given by
// turns, so that each would keep this until the last is done. Eight are twice as many as there are threads by default;
// two leave half of the threads to the others.
const usual = new Lane(8);
const slow = new Lane(2);

/**
 * Decompresses a message once enough of those before it are done, so that all together take little memory.
 *
 * A message that decodes to far more than came waits for others that do, and for nothing else, so that a few bytes
 * cannot hold up those who send what they ask for. A compression that the user has added takes no turns, because it may
 * never be done.
 *
 * @param exchange - that of its call: nothing is done for a call that has ended meanwhile
 */
export async function decompressInTurn(
  compression: Compression,
  bytes: Uint8Array,
  readMaxBytes: number,
  exchange: Pick<Exchange, "abortReceiver">,
): Promise<Uint8Array> {
  if (!decodesPieces(compression)) return compression.decompress(bytes, readMaxBytes);
  const upTo = (limitBytes: number) => (): Promise<Uint8Array> => {
    if (exchange.abortReceiver === undefined) throw goneAway();
    return compression.decompress(bytes, limitBytes);
  };
  const usualBytes = Math.max(smallBytesMax, bytes.byteLength * usualRatioMax);
  if (usualBytes >= readMaxBytes) return usual.run(upTo(readMaxBytes));
  if (!slow.hasRoom) {
    // Whether it is wrong or only too large, its other turn will tell.
    const decoded = await usual.run(upTo(usualBytes)).catch(() => undefined);
    if (decoded !== undefined) return decoded;
  }
  return slow.run(upTo(readMaxBytes));
}
