import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "@plantstore/http";
import { decodesPieces } from "./compression.ts";
import { clientGoneError } from "./http-error.ts";

/**
 * The compression ratio above which a message goes to a separate queue.
 *
 * Text rarely reaches a fifth of this ratio. Up to it, decompression costs no more per received byte than all other
 * processing.
 */
const normalRatioMax = 100;

/** The decompressed size up to which a message is never queued separately. */
const smallBytesMax = 64 * 1024;

/** Limits how many messages are decompressed at the same time. The others wait in order. */
class DecompressionQueue {
  #freeSlots: number;
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#freeSlots = slots;
  }

  get hasFreeSlot(): boolean {
    return this.#freeSlots > 0;
  }

  async run(decompress: () => Promise<Uint8Array>): Promise<Uint8Array> {
    // A finished message passes its slot to the next.
    if (this.hasFreeSlot) this.#freeSlots -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await decompress();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#freeSlots += 1;
      else next();
    }
  }
}

// Shared by all gateways that share this module. Each message may hold an 8 MiB window (16 MiB if `readMaxBytes` is
// above 8 MiB), and twice its length while its pieces are joined. Node's thread pool interleaves all running
// decompressions, so without a limit each would hold this memory until the last is done. Eight are twice the pool's
// default size. Two leave half of its threads to other messages.
const normalQueue = new DecompressionQueue(8);
const highRatioQueue = new DecompressionQueue(2);

/**
 * Decompresses a message when a slot is free, which bounds the memory for all running decompressions.
 *
 * Messages with a high compression ratio have a separate queue, so that small malicious messages cannot delay others. A
 * compression that the user has added is not queued, because it may never finish.
 *
 * @param exchange - the call's exchange. If the call has ended in the meantime, its message is not decompressed
 */
export async function decompressQueued(
  compression: Compression,
  bytes: Uint8Array,
  readMaxBytes: number,
  exchange: Pick<Exchange, "abortReceiver">,
): Promise<Uint8Array> {
  if (!decodesPieces(compression)) return compression.decompress(bytes, readMaxBytes);
  const decompressUpTo = (limitBytes: number) => (): Promise<Uint8Array> => {
    if (exchange.abortReceiver === undefined) throw clientGoneError();
    return compression.decompress(bytes, limitBytes);
  };
  const normalBytes = Math.max(smallBytesMax, bytes.byteLength * normalRatioMax);
  if (normalBytes >= readMaxBytes) return normalQueue.run(decompressUpTo(readMaxBytes));
  if (!highRatioQueue.hasFreeSlot) {
    // The message may be invalid or larger than `normalBytes`. The second attempt throws the right error.
    const decoded = await normalQueue.run(decompressUpTo(normalBytes)).catch(() => undefined);
    if (decoded !== undefined) return decoded;
  }
  return highRatioQueue.run(decompressUpTo(readMaxBytes));
}
