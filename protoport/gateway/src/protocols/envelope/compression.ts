import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "../../http/index.ts";
import { problem, type ProblemDetails } from "../../protobuf/index.ts";
import { clientGoneError } from "../http-error.ts";

/**
 * A compression that can also decompress bodies in pieces. `decompress` stops soon after the message exceeds the size
 * limit, even if the message has a large window.
 */
export interface PieceDecompression extends Compression {
  /**
   * Decompresses a body as it arrives, with backpressure.
   *
   * @param freeBytes - the number of decompressed bytes after which the compression ratio is limited
   * @param signal - frees the decoder when aborted, even if nobody reads the rest. Later reads throw the abort reason
   * @throws ConnectError `InvalidArgument` for malformed or trailing bytes, or `ResourceExhausted` if the compression
   * ratio is too high or too many bodies are being decompressed
   */
  decodePieces(pieces: AsyncIterable<Uint8Array>, freeBytes: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** A compression that can also decompress and compress bodies in pieces. */
export interface StreamCompression extends PieceDecompression {
  /** Opens one body's encoder. The encoder holds memory until the encoder has ended or is closed. */
  openEncoder(): PieceEncoder;
}

/** Encodes a body in pieces. A client can decode each piece as soon as the piece arrives. */
export interface PieceEncoder {
  /** Encodes a piece. Rejects after {@link close} was called. */
  write(bytes: Uint8Array): Promise<Uint8Array>;
  /** Encodes the last piece and the end. Rejects if any piece has failed, and never settles after {@link close}. */
  end(bytes: Uint8Array): Promise<Uint8Array>;
  /** Frees the memory for a body that will not be completed. */
  close(): void;
}

/** Returns whether a compression decodes pieces. Compressions added by the user decode only complete messages. */
export function decodesPieces(compression: Compression): compression is PieceDecompression {
  return "decodePieces" in compression;
}

/** Returns whether a compression encodes pieces. The Compression Streams API cannot, because the API has no flush. */
export function encodesPieces(compression: Compression): compression is StreamCompression {
  return "openEncoder" in compression;
}

/** Returns the error for a message above a limit, before or after decompression. `more` has the limit's option. */
export function messageTooLargeError(
  maxBytes: number,
  more: Pick<ProblemDetails, "option"> = { option: "readMaxBytes" },
): ConnectError {
  return problem("ERR_BODY_TOO_LARGE", `the message is larger than ${maxBytes} bytes`, more);
}

/**
 * Maximum compression ratio of a message that never waits in the queue for high ratios. Text rarely has a ratio above
 * 20. Up to the maximum, decompression costs at most as much per received byte as all other processing.
 */
const maxNormalRatio = 100;

/** Maximum decompressed bytes of a message that never waits in the queue for high ratios. */
const maxSmallBytes = 64 * 1024;

/** Limits how many messages are decompressed at the same time. Other messages wait in order. */
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
    // A finished message passes its slot to the next waiting message.
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

// All gateways that share this module share both queues. A message may hold an 8 MiB window (16 MiB if `readMaxBytes`
// is above 8 MiB), and twice the message's length while its pieces are joined. Node's thread pool interleaves all
// running decompressions. Without a limit, each message would hold its memory until the last message is decompressed.
// Eight slots are twice the pool's default size. Two slots for high ratios leave half of the threads to other messages.
const normalQueue = /* @__PURE__ */ new DecompressionQueue(8);
const highRatioQueue = /* @__PURE__ */ new DecompressionQueue(2);

/**
 * Decompresses a message when a slot is free, which bounds the memory for all running decompressions.
 *
 * Messages with a high compression ratio have a separate queue, so that small malicious messages cannot delay other
 * messages. A message in a compression added by the user is not queued, because decompression may never finish.
 *
 * @param exchange - the call's exchange, whose end cancels a decompression that waits for a slot
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
  const normalBytes = Math.max(maxSmallBytes, bytes.byteLength * maxNormalRatio);
  if (normalBytes >= readMaxBytes) return normalQueue.run(decompressUpTo(readMaxBytes));
  if (!highRatioQueue.hasFreeSlot) {
    // The first error is ignored. The second attempt throws the right error for a message that is invalid or too large.
    const decoded = await normalQueue.run(decompressUpTo(normalBytes)).catch(() => undefined);
    if (decoded !== undefined) return decoded;
  }
  return highRatioQueue.run(decompressUpTo(readMaxBytes));
}
