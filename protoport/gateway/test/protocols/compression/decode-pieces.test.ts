import { brotliCompressSync, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { brotli, zstd } from "../../../src/protocols/compression/index.ts";
import { maxZstdWindowBytes } from "../../../src/protocols/compression/decode-pieces.ts";
import { collect } from "@protoport/testing/process";

async function* disconnectAfter(start: Uint8Array): AsyncGenerator<Uint8Array> {
  yield start;
  throw new Error("the client has disconnected");
}

async function* invalid(): AsyncGenerator<Uint8Array> {
  yield Buffer.alloc(100, 0xff);
}

/** One body more than the budget allows in zstd, whose windows have 8 MiB. Windows in br have 16 MiB. */
const minBodies = maxZstdWindowBytes / (8 * 1024 * 1024) + 1;

test.each(
  // oxfmt-ignore
  [
    ["invalid br bodies", brotli, invalid, "the body is not valid br"],
    ["invalid zstd bodies", zstd, invalid, "the body is not valid zstd"],
    ["incomplete br bodies", brotli, () => disconnectAfter(brotliCompressSync(Buffer.alloc(10)).subarray(0, 3)),
      "the client has disconnected"],
    ["incomplete zstd bodies", zstd, () => disconnectAfter(zstdCompressSync(Buffer.alloc(10)).subarray(0, 3)),
      "the client has disconnected"],
  ],
)("%s release their decompression windows", async (_name, compression, open, error) => {
  for (let bodies = 0; bodies < minBodies; bodies++)
    await expect(collect(compression.decodePieces(open(), 0, new AbortController().signal))).rejects.toThrow(error);
});
