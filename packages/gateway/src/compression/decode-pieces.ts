import { addAbortSignal } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { BrotliDecompress, Gunzip, ZstdDecompress } from "node:zlib";
import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../errors/index.ts";
import { nodeZlib } from "./node-zlib.ts";
import { takeWindow } from "./window-budget.ts";

/** The largest Zstandard window accepted, as an exponent of two: 8 MiB, the limit for encoders (RFC 9659 §3). */
// The window is allocated as soon as a frame announces its size: at node's own limit of 128 MiB, 15 bytes cost 2 ms.
export const zstdWindowLogMax = 23;

/** Bytes decompressed at a time. With node's default of 16 KiB a message of 4 MiB takes twice the CPU. */
export const decodedPieceBytes: number = 64 * 1024;

type Decoder = Gunzip | BrotliDecompress | ZstdDecompress;

const openDecoder = {
  gzip: (): Decoder => nodeZlib().createGunzip({ chunkSize: decodedPieceBytes }),
  br: (): Decoder => nodeZlib().createBrotliDecompress({ chunkSize: decodedPieceBytes }),
  zstd: (): Decoder =>
    nodeZlib().createZstdDecompress({
      chunkSize: decodedPieceBytes,
      params: { [nodeZlib().constants.ZSTD_d_windowLogMax]: zstdWindowLogMax },
    }),
};

/** The name of a coding that zlib decodes. */
export type ZlibCoding = keyof typeof openDecoder;

/**
 * Bytes of the largest window that a decoder accepts, which it holds until its body has been read or its call has ended,
 * however little was sent.
 *
 * By the coding and not by the window that a body announces: in zstd each frame announces one of its own.
 */
const windowBytes: Readonly<Record<ZlibCoding, number>> = {
  // Its 32 KiB are less than what any stream takes.
  gzip: 0,
  // RFC 7932 §9.1.
  br: 2 ** 24,
  zstd: 2 ** zstdWindowLogMax,
};

/**
 * Bytes that a body may decode to for each byte that has arrived, once it is longer than a message may be.
 *
 * A stream has no limit of its own, and some codings turn a kilobyte into a gigabyte, which would be read line by line.
 */
// The most that gzip can reach, so that no gzip body is refused, and no other coding costs more.
const decodedRatioMax = 1032;

/** Implements {@link StreamCompression.decodePieces}. */
export async function* decodePieces(
  pieces: AsyncIterable<Uint8Array>,
  coding: ZlibCoding,
  freeBytes: number,
  ended: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const decoder = openWithWindow(coding, ended);
  let encodedBytes = 0;
  const count = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      encodedBytes += piece.byteLength;
      yield piece;
    }
  };
  // Whatever it fails with is thrown by the loop.
  pipeline(count, decoder).catch(() => undefined);
  let leftBytes = freeBytes;
  try {
    for await (const piece of decoder as AsyncIterable<Buffer>) {
      if ((leftBytes -= piece.byteLength) < -encodedBytes * decodedRatioMax) throw decodesToTooMuch();
      yield piece;
    }
  } catch (error) {
    if (!isOfDecoder(error)) throw ended.aborted ? ended.reason : error;
    // Some clients encode an empty body as no bytes, although no coding has an empty form.
    if (encodedBytes === 0) return;
    throw notOfCoding(coding);
  }
  if (decoder.bytesWritten !== encodedBytes) throw notOfCoding(coding);
}

/** Opens a decoder, which closes, and gives its window back, when all of it has been read or the call has ended. */
function openWithWindow(coding: ZlibCoding, ended: AbortSignal): Decoder {
  const giveBack = takeWindow(windowBytes[coding]);
  const decoder = openDecoder[coding]().once("close", giveBack);
  // `pipeline` would heed the signal only until the end of the body has been written to the decoder.
  return addAbortSignal(ended, decoder);
}

/** Returns whether an error says that the bytes are wrong, rather than that their sender has gone away. */
function isOfDecoder(error: unknown): boolean {
  return error instanceof Error && "errno" in error;
}

function notOfCoding(coding: string): ConnectError {
  return problem("ERR_ENCODING_INVALID", `the body is not valid ${coding}`);
}

function decodesToTooMuch(): ConnectError {
  return problem("ERR_BODY_TOO_LARGE", `the body decompresses to more than ${decodedRatioMax} times its size`);
}
