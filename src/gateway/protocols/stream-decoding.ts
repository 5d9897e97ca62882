import { pipeline } from "node:stream/promises";
import * as zlib from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorWithHttpStatus } from "../rest/index.ts";
import { decodedPieceBytes, zstdWindowLogMax } from "./compression.ts";

type Decoder = zlib.Gunzip | zlib.BrotliDecompress | zlib.ZstdDecompress;

const openDecoder: ReadonlyMap<string, () => Decoder> = new Map([
  ["gzip", () => zlib.createGunzip({ chunkSize: decodedPieceBytes })],
  ["br", () => zlib.createBrotliDecompress({ chunkSize: decodedPieceBytes })],
  [
    "zstd",
    () =>
      zlib.createZstdDecompress({
        chunkSize: decodedPieceBytes,
        params: { [zlib.constants.ZSTD_d_windowLogMax]: zstdWindowLogMax },
      }),
  ],
]);
const known = [...openDecoder.keys()].join(", ");

/**
 * Bytes that a body may decode to for each byte that has arrived, once it is longer than a message may be.
 *
 * A stream has no limit, and some codings make a gigabyte of a kilobyte, which would then be read line by line.
 */
// What gzip can reach (1,032), so that no body in gzip is refused, and no other coding costs more.
const decodedRatioMax = 1032;

/**
 * Undoes the content coding of a body as it arrives, with back-pressure.
 *
 * @param freeBytes - what any body may decode to, however small it is
 * @throws ConnectError `InvalidArgument` for bytes that are not of the coding, including bytes after its end;
 * `ResourceExhausted` for more than can be honest; 415 for a coding that cannot be read as it arrives
 */
export async function* decodePieces(
  pieces: AsyncIterable<Uint8Array>,
  coding: string,
  freeBytes: number,
): AsyncGenerator<Uint8Array> {
  const decoder = openDecoder.get(coding)?.();
  // A coding that the user has added, whose bytes can only be decoded all at once.
  if (decoder === undefined)
    throw errorWithHttpStatus(`the content encoding must be one of ${known}`, Code.InvalidArgument, 415);
  let encodedBytes = 0;
  const count = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      encodedBytes += piece.byteLength;
      yield piece;
    }
  };
  const pumped = pipeline(count, decoder);
  // Whatever it fails with is thrown by the loop as well.
  pumped.catch(() => undefined);
  let decodedBytes = 0;
  try {
    for await (const piece of decoder as AsyncIterable<Buffer>) {
      decodedBytes += piece.byteLength;
      if (decodedBytes > freeBytes + encodedBytes * decodedRatioMax) throw decodesToTooMuch();
      yield piece;
    }
    await pumped;
  } catch (error) {
    // Some clients send nothing at all as no bytes, although no coding has an empty form.
    if (encodedBytes === 0 && isOfDecoder(error)) return;
    throw isOfDecoder(error) ? notOfCoding(coding) : error;
  }
  if (decoder.bytesWritten !== encodedBytes) throw notOfCoding(coding);
}

/** Whether an error is about the bytes, and not about whoever sent them. */
function isOfDecoder(error: unknown): boolean {
  return error instanceof Error && "errno" in error && typeof error.errno === "number" && "code" in error;
}

function notOfCoding(coding: string): ConnectError {
  return new ConnectError(`the body is not valid ${coding}`, Code.InvalidArgument);
}

function decodesToTooMuch(): ConnectError {
  return new ConnectError(
    `the body is more than ${decodedRatioMax} times smaller than its content`,
    Code.ResourceExhausted,
  );
}
