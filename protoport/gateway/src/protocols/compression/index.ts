/** How are messages and bodies compressed on node? gzip, br and zstd. */
import { promisify } from "node:util";
import type { BrotliCompress, Gzip, ZstdCompress, ZstdOptions } from "node:zlib";
import { problem } from "../../protobuf/index.ts";
import { messageTooLargeError, type PieceEncoder, type StreamCompression } from "../index.ts";
import { decodedPieceBytes, decodePieces, nodeZlib, type ZlibCoding, maxZstdWindowLog } from "./decode-pieces.ts";

// The compressions that a gateway on node offers. This module is separate because the protocols look up compressions by
// name, and also run where zlib is not available.

/** The gzip compression (RFC 1952). The name `gzip` is the same in HTTP, gRPC and Connect. */
export const gzip: StreamCompression = createCompression("gzip", () => {
  const { gzip: deflate, gunzip } = nodeZlib();
  return { deflate: promisify(deflate), inflate: promisify(gunzip) };
});

// Compressing 1 MiB of JSON with quality 4 takes 37 ms, compared with 24 ms for gzip. Node's default quality of 11
// halves the compressed size, but takes 4.6 s.
const brotliQuality = 4;

/** The Brotli compression (RFC 7932). */
export const brotli: StreamCompression = createCompression("br", () => {
  const { brotliCompress, brotliDecompress, constants } = nodeZlib();
  const compress = promisify(brotliCompress);
  return {
    deflate: (bytes) => compress(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } }),
    inflate: promisify(brotliDecompress),
  };
});

/** The Zstandard compression (RFC 8878), with windows of up to 8 MiB. */
export const zstd: StreamCompression = createCompression("zstd", () => {
  const { zstdCompress, zstdDecompress, constants } = nodeZlib();
  const options = { params: { [constants.ZSTD_d_windowLogMax]: maxZstdWindowLog } };
  return { deflate: promisify(zstdCompress), inflate: promisify(zstdDecompress), options };
});

interface Functions {
  readonly deflate: (bytes: Uint8Array) => Promise<Buffer>;
  readonly inflate: (bytes: Uint8Array, options: ZstdOptions) => Promise<unknown>;
  readonly options?: ZstdOptions;
}

/** The result of zlib's functions with the option `info`, which Node's types do not declare. */
interface Inflated {
  readonly buffer: Buffer;
  /** zlib's engine. `bytesWritten` is the number of consumed input bytes. */
  readonly engine: { readonly bytesWritten: number };
}

/** `decompress` throws `ResourceExhausted` above `readMaxBytes`, `InvalidArgument` for invalid or trailing bytes. */
function createCompression(name: ZlibCoding, load: () => Functions): StreamCompression {
  let loaded: Functions | undefined;
  const functions = (): Functions => (loaded ??= load());
  return {
    name,
    compress: async (bytes) => new Uint8Array(await functions().deflate(bytes)),
    decompress: async (bytes, readMaxBytes) => {
      // Some clients compress an empty message to no bytes, which is not valid in any format.
      if (bytes.byteLength === 0) return new Uint8Array(0);
      try {
        const { inflate, options } = functions();
        const decoderOptions = { ...options, chunkSize: decodedPieceBytes, maxOutputLength: readMaxBytes, info: true };
        const input = name === "br" ? narrowWindow(bytes, readMaxBytes) : bytes;
        const { buffer, engine } = (await inflate(input, decoderOptions)) as Inflated;
        if (engine.bytesWritten === bytes.byteLength) return new Uint8Array(buffer);
      } catch (error) {
        if (error instanceof RangeError) throw messageTooLargeError(readMaxBytes);
      }
      throw problem("ERR_ENCODING_INVALID", `the message is not valid ${name}`);
    },
    decodePieces: (pieces, freeBytes, signal) => decodePieces(pieces, name, freeBytes, signal),
    openEncoder: () => new ZlibEncoder(name),
  };
}

/**
 * Returns a Brotli message with the window reduced to the size that the message can fill (RFC 7932 §9.1).
 *
 * A decoder outputs nothing until the window is full or the message is complete. With a large window, a message of 51
 * bytes could fill 16 MiB before the message is rejected. A message that fits in the reduced window decodes to the same
 * bytes, because back-references stay within the message and the dictionary.
 */
function narrowWindow(bytes: Uint8Array, maxMessageBytes: number): Uint8Array {
  const [first = 0] = bytes;
  // In the first byte, a 1 bit followed by three bits n > 0 is a window of 2^(17+n) - 16 bytes. Smaller windows are
  // encoded differently.
  const log = (first & 1) === 1 ? (first >> 1) & 7 : 0;
  const sufficientLog = Math.max(1, Math.ceil(Math.log2(maxMessageBytes + 16)) - 17);
  if (log <= sufficientLog) return bytes;
  const narrowed = new Uint8Array(bytes);
  narrowed[0] = (first & ~0x0e) | (sufficientLog << 1);
  return narrowed;
}

type Encoder = Gzip | BrotliCompress | ZstdCompress;

// Each encoder flushes after every write, so that a client can decode a message as soon as the message is sent. An open
// stream holds its encoder, so windows of at most 32 KiB and fast levels save memory. A gzip or zstd encoder takes 200
// KiB and a br encoder 350 KiB, compared with up to 860 KiB for zlib's defaults.
const openEncoder = {
  gzip: (): Encoder => {
    const { constants, createGzip } = nodeZlib();
    // equivalent mutant: node does not report zlib's memory, which also varies with the input.
    const size = { windowBits: 14, memLevel: 7 };
    return createGzip({ flush: constants.Z_SYNC_FLUSH, ...size });
  },
  br: (): Encoder => {
    const { constants, createBrotliCompress } = nodeZlib();
    // equivalent mutant: same as above.
    const params = { [constants.BROTLI_PARAM_QUALITY]: 3, [constants.BROTLI_PARAM_LGWIN]: 15 };
    return createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH, params });
  },
  zstd: (): Encoder => {
    const { constants, createZstdCompress } = nodeZlib();
    // equivalent mutant: same as above.
    const params = { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_windowLog]: 15 };
    return createZstdCompress({ flush: constants.ZSTD_e_flush, params });
  },
};

class ZlibEncoder implements PieceEncoder {
  readonly #encoder: Encoder;
  #encoded: Buffer[] = [];

  constructor(coding: ZlibCoding) {
    this.#encoder = openEncoder[coding]();
    // The encoder's error is ignored here, because the callbacks in `write` and `end` receive the error.
    this.#encoder.on("data", (bytes: Buffer) => void this.#encoded.push(bytes)).on("error", () => undefined);
  }

  write(bytes: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#encoder.write(bytes, (error) => (error ? reject(error) : resolve(this.#takeEncoded())));
    });
  }

  end(bytes: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#encoder
        .on("error", reject)
        .on("end", () => resolve(this.#takeEncoded()))
        .end(bytes);
    });
  }

  close(): void {
    this.#encoder.destroy();
  }

  #takeEncoded(): Uint8Array {
    const encoded = Buffer.concat(this.#encoded);
    this.#encoded = [];
    return encoded;
  }
}
