import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { concatBytes } from "../carriers/index.ts";
import { messageTooLarge } from "../protocols/index.ts";

/** gzip (RFC 1952) by the Compression Streams of the web: the only coding that every platform has. */
export const webGzip: Compression = {
  name: "gzip",
  compress: (bytes) => readAll(inPieces(bytes).pipeThrough(new CompressionStream("gzip")), Number.POSITIVE_INFINITY),
  decompress: async (bytes, readMaxBytes) => {
    // Some clients send an empty message as no bytes, although no format has an empty form.
    if (bytes.byteLength === 0) return new Uint8Array(0);
    try {
      return await readAll(inPieces(bytes).pipeThrough(new DecompressionStream("gzip")), readMaxBytes);
    } catch (error) {
      if (error instanceof ConnectError) throw error;
      throw new ConnectError("the message is not valid gzip", Code.InvalidArgument);
    }
  },
};

/** Bytes that are decompressed at a time. */
// 4 KiB, of which gzip makes 4 MiB at the most: some platforms finish a piece whether or not its result is read.
const pieceBytes = 4096;

function inPieces(bytes: Uint8Array): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < bytes.byteLength) controller.enqueue(new Uint8Array(bytes.subarray(at, (at += pieceBytes))));
      else controller.close();
    },
  });
}

/** @throws ConnectError `ResourceExhausted` as soon as there are more than `bytesMax` */
async function readAll(stream: ReadableStream<Uint8Array>, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of stream) {
    bytes += piece.byteLength;
    if (bytes > bytesMax) throw messageTooLarge(bytesMax);
    pieces.push(piece);
  }
  return new Uint8Array(concatBytes(pieces));
}
