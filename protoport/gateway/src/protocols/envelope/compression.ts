import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { problem, type ProblemDetails } from "../../protobuf/index.ts";

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
  bytesMax: number,
  more: Pick<ProblemDetails, "option"> = { option: "readMaxBytes" },
): ConnectError {
  return problem("ERR_BODY_TOO_LARGE", `the message is larger than ${bytesMax} bytes`, more);
}
