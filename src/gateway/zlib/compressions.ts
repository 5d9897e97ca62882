import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { messageTooLarge, type StreamCompression } from "../protocols/index.ts";
import { decodedPieceBytes, decodePieces, type ZlibCoding, zstdWindowLogMax } from "./decode-pieces.ts";
import { ZlibEncoder } from "./piece-encoder.ts";

/** gzip (RFC 1952), under its name in `Content-Encoding`, `Grpc-Encoding` and `Connect-Content-Encoding`. */
export const gzip: StreamCompression = createCompression("gzip", promisify(zlib.gzip), promisify(zlib.gunzip));

const compressBrotli = promisify(zlib.brotliCompress);
// A mebibyte of JSON takes 37 ms, in gzip 24. Node's own quality of 11 makes half as many bytes, but takes 4.6 s.
const brotliOptions = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } };

/** Brotli (RFC 7932). */
export const brotli: StreamCompression = createCompression(
  "br",
  (bytes) => compressBrotli(bytes, brotliOptions),
  promisify(zlib.brotliDecompress),
);

/** Zstandard (RFC 8878), with windows of up to 8 MiB. */
export const zstd: StreamCompression = createCompression(
  "zstd",
  promisify(zlib.zstdCompress),
  promisify(zlib.zstdDecompress),
  { params: { [zlib.constants.ZSTD_d_windowLogMax]: zstdWindowLogMax } },
);

type Deflate = (bytes: Uint8Array) => Promise<Buffer>;
type Inflate = (bytes: Uint8Array, options: zlib.ZstdOptions) => Promise<unknown>;

/** The result of node's functions with the option `info`, which their types do not declare. */
interface Inflated {
  readonly buffer: Buffer;
  /** `bytesWritten` counts the input that was used. */
  readonly engine: { readonly bytesWritten: number };
}

/**
 * Creates a compression whose decompression stops at its limit, however small the input.
 *
 * `decompress` throws `ResourceExhausted` above the limit, and `InvalidArgument` for bytes that are not of the format,
 * including bytes after its end.
 */
function createCompression(
  name: ZlibCoding,
  deflate: Deflate,
  inflate: Inflate,
  options: zlib.ZstdOptions = {},
): StreamCompression {
  return {
    name,
    // In br nothing comes out before the window is full, or the message is complete.
    stopsEarly: name !== "br",
    compress: async (bytes) => new Uint8Array(await deflate(bytes)),
    decompress: async (bytes, readMaxBytes) => {
      // Some clients send an empty message as no bytes, although no format has an empty form.
      if (bytes.byteLength === 0) return new Uint8Array(0);
      try {
        const all = { ...options, chunkSize: decodedPieceBytes, maxOutputLength: readMaxBytes, info: true };
        const { buffer, engine } = (await inflate(bytes, all)) as Inflated;
        if (engine.bytesWritten === bytes.byteLength) return new Uint8Array(buffer);
      } catch (error) {
        if (error instanceof RangeError) throw messageTooLarge(readMaxBytes);
      }
      throw new ConnectError(`the message is not valid ${name}`, Code.InvalidArgument);
    },
    decodePieces: (pieces, freeBytes, ended) => decodePieces(pieces, name, freeBytes, ended),
    openEncoder: () => new ZlibEncoder(name),
  };
}
