import { addAbortSignal } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { BrotliDecompress, Gunzip, ZstdDecompress } from "node:zlib";
import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../../protobuf/index.ts";

/** The largest accepted Zstandard window, as an exponent of two. The limit for encoders is 8 MiB (RFC 9659 §3). */
// The window is allocated as soon as a frame announces the window size. With node's limit of 128 MiB, the allocation
// for a body of 15 bytes would take 2 ms.
export const maxZstdWindowLog = 23;

/** Bytes per decompressed chunk. With node's default of 16 KiB, a message of 4 MiB takes twice the CPU time. */
export const decodedPieceBytes: number = 64 * 1024;

type Decoder = Gunzip | BrotliDecompress | ZstdDecompress;

const openDecoder = {
  gzip: (): Decoder => nodeZlib().createGunzip({ chunkSize: decodedPieceBytes }),
  br: (): Decoder => nodeZlib().createBrotliDecompress({ chunkSize: decodedPieceBytes }),
  zstd: (): Decoder =>
    nodeZlib().createZstdDecompress({
      chunkSize: decodedPieceBytes,
      params: { [nodeZlib().constants.ZSTD_d_windowLogMax]: maxZstdWindowLog },
    }),
};

/** A coding that zlib decodes. */
export type ZlibCoding = keyof typeof openDecoder;

/**
 * Bytes in the largest accepted window. A decoder holds the window until the body has been read or the call has ended,
 * even if the client has sent only a few bytes. The window size at the start of a body is ignored, because a later zstd
 * frame may announce a larger window.
 */
const windowBytes: Readonly<Record<ZlibCoding, number>> = {
  // The gzip window counts as 0 bytes, because its 32 KiB are less than the memory of any stream.
  gzip: 0,
  // RFC 7932 §9.1.
  br: 2 ** 24,
  zstd: 2 ** maxZstdWindowLog,
};

/**
 * Maximum decoded bytes per received byte, checked once a body is longer than the message limit. A stream's length is
 * not limited, so without a maximum, a kilobyte could decompress to a gigabyte of messages. The value is the highest
 * ratio that gzip can reach: no gzip body is rejected, and no other coding costs more.
 */
const maxDecodedRatio = 1032;

/** Implements {@link StreamCompression.decodePieces}. */
export async function* decodePieces(
  pieces: AsyncIterable<Uint8Array>,
  coding: ZlibCoding,
  freeBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const decoder = openWithWindow(coding, signal);
  let encodedBytes = 0;
  const count = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      encodedBytes += piece.byteLength;
      yield piece;
    }
  };
  // The pipeline's error is ignored here, because the loop below throws the same error.
  pipeline(count, decoder).catch(() => undefined);
  let remainingBytes = freeBytes;
  try {
    for await (const piece of decoder as AsyncIterable<Buffer>) {
      if ((remainingBytes -= piece.byteLength) < -encodedBytes * maxDecodedRatio)
        throw problem("ERR_BODY_TOO_LARGE", `the body decompresses to more than ${maxDecodedRatio} times its size`);
      yield piece;
    }
  } catch (error) {
    if (!isDecoderError(error)) throw signal.aborted ? signal.reason : error;
    // Some clients compress an empty body to no bytes, which is not valid in any coding.
    if (encodedBytes === 0) return;
    throw invalidEncodingError(coding);
  }
  if (decoder.bytesWritten !== encodedBytes) throw invalidEncodingError(coding);
}

function openWithWindow(coding: ZlibCoding, signal: AbortSignal): Decoder {
  const release = reserveWindow(windowBytes[coding]);
  const decoder = openDecoder[coding]().once("close", release);
  // `pipeline` would ignore the signal once the end of the body has been written to the decoder.
  return addAbortSignal(signal, decoder);
}

/** Returns whether an error means that the bytes are not valid, and not that the sender has disconnected. */
function isDecoderError(error: unknown): boolean {
  return error instanceof Error && "errno" in error;
}

function invalidEncodingError(coding: string): ConnectError {
  return problem("ERR_ENCODING_INVALID", `the body is not valid ${coding}`);
}

/** Returns `node:zlib`, and loads the module on first use. Loading takes 3 ms and 3 MB. */
export function nodeZlib(): typeof import("node:zlib") {
  return process.getBuiltinModule("node:zlib");
}

/** Maximum total bytes in the windows of all decoders, across all gateways that share this code. */
// 256 MiB is half the memory of a machine with 512 MiB, and also the default of `limits.backlogBytes`.
export const maxZstdWindowBytes: number = 256 * 1024 * 1024;

// This variable is global because memory is limited per process, and all gateways share the memory.
let reservedBytes = 0;

/**
 * Reserves memory for a decoder's window, which node counts neither as heap nor as buffers.
 *
 * @returns a function that releases the memory and must be called only once
 * @throws ConnectError `ResourceExhausted` if the budget is exceeded
 */
export function reserveWindow(bytes: number): () => void {
  if (reservedBytes + bytes > maxZstdWindowBytes)
    throw problem("ERR_DECODING_BUSY", "too many br or zstd bodies are being decompressed at the same time");
  reservedBytes += bytes;
  return () => {
    reservedBytes -= bytes;
  };
}
