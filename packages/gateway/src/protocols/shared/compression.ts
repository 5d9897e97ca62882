import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { problem } from "../../errors/index.ts";

/**
 * A compression that also reads bodies piece by piece. Its `decompress` stops soon above its limit, whatever the window
 * of the message.
 */
export interface PieceDecompression extends Compression {
  /**
   * Undoes the content coding of a body as it arrives, with back-pressure.
   *
   * @param freeBytes - bytes that any body may decode to, however small it is
   * @param ended - frees the decoder when it aborts, even if nobody reads on; whoever does gets its reason
   * @throws ConnectError `InvalidArgument` for bytes that are not of the coding, including bytes after its end;
   * `ResourceExhausted` for a body that decodes to more than an honest one can, or if too much is being decoded
   */
  decodePieces(pieces: AsyncIterable<Uint8Array>, freeBytes: number, ended: AbortSignal): AsyncIterable<Uint8Array>;
}

/** A compression that also reads and writes bodies piece by piece. */
export interface StreamCompression extends PieceDecompression {
  /** Opens the encoder of one body. It holds memory until its end, or until it is closed. */
  openEncoder(): PieceEncoder;
}

/** Encodes a body that is sent in pieces, so that a client can decode each piece as soon as it arrives. */
export interface PieceEncoder {
  /** Encodes a piece. Rejects once {@link close} was called. */
  write(bytes: Uint8Array): Promise<Uint8Array>;
  /**
   * Encodes the last piece and the end. Rejects if this or a piece that is still being encoded fails, and never settles
   * if {@link close} was called.
   */
  end(bytes: Uint8Array): Promise<Uint8Array>;
  /** Frees its memory before the end, for a body that will not be completed. */
  close(): void;
}

/** Returns whether a compression decodes pieces; one that the user has added takes all bytes at once. */
export function decodesPieces(compression: Compression): compression is PieceDecompression {
  return "decodePieces" in compression;
}

/** Returns whether a compression encodes pieces, which the Compression Streams of the web cannot: they never flush. */
export function encodesPieces(compression: Compression): compression is StreamCompression {
  return "openEncoder" in compression;
}

/** Returns the error for a message over the configured limit, before or after decompression. */
export function messageTooLarge(readMaxBytes: number): ConnectError {
  return problem("ERR_BODY_TOO_LARGE", `the message is larger than ${readMaxBytes} bytes`);
}
