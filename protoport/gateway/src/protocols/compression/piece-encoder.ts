import type { BrotliCompress, Gzip, ZstdCompress } from "node:zlib";
import type { PieceEncoder } from "../index.ts";
import type { ZlibCoding } from "./decode-pieces.ts";
import { nodeZlib } from "./node-zlib.ts";

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

/** An encoder that uses node's zlib. */
export class ZlibEncoder implements PieceEncoder {
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
