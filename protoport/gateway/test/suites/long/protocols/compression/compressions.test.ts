import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { webGzip } from "../../../../../src/fetch/create-fetch-gateway.ts";
import { brotli, gzip, zstd } from "../../../../../src/protocols/compression/index.ts";
import { within } from "@protoport/testing/process";

// Node's compressions, and the gzip of Compression Streams, which a gateway uses over Fetch.
const compressions = [
  { name: "gzip", compression: gzip, compressSync: gzipSync },
  { name: "gzip", compression: webGzip, compressSync: gzipSync },
  { name: "br", compression: brotli, compressSync: compressQuickly },
  { name: "zstd", compression: zstd, compressSync: zstdCompressSync },
];

// Brotli's default quality is slow.
function compressQuickly(bytes: Uint8Array): Buffer {
  return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } });
}

/** A signal for a call that does not end before its body. */
const live = new AbortController().signal;
const limitBytes = 1000;
const bombBytes = 16 * 1024 * 1024;

describe.each(compressions)("$name", ({ name, compression, compressSync }) => {
  test("has the name of the HTTP content coding", () => expect(compression.name).toBe(name));

  test("decompresses its own output unchanged", async () =>
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: limitBytes }), async (bytes) => {
        const packed = await compression.compress(bytes);
        expect(Buffer.from(await compression.decompress(packed, limitBytes)).equals(bytes)).toBe(true);
      }),
      { numRuns: 30 },
    ));

  test("decompresses an empty message to an empty message", async () =>
    expect(await compression.decompress(new Uint8Array(0), limitBytes)).toHaveLength(0));

  test("decompresses a message of exactly the limit", async () => {
    const bytes = randomBytes(limitBytes);
    expect(Buffer.from(await compression.decompress(compressSync(bytes), limitBytes)).equals(bytes)).toBe(true);
  });

  test("refuses a message one byte over the limit", async () => {
    const packed = compressSync(randomBytes(limitBytes + 1));
    await expect(compression.decompress(packed, limitBytes)).rejects.toMatchObject({ code: Code.ResourceExhausted });
  });

  test("refuses a message over the limit even if each chunk is smaller", async () => {
    const packed = compressSync(randomBytes(150_000));
    await expect(compression.decompress(packed, 100_000)).rejects.toMatchObject({ code: Code.ResourceExhausted });
  });

  test("stops decompressing a compression bomb at the limit", async () => {
    const bomb = compressSync(Buffer.alloc(bombBytes));
    const before = process.memoryUsage().arrayBuffers;
    await expect(compression.decompress(bomb, limitBytes)).rejects.toMatchObject({ code: Code.ResourceExhausted });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(bombBytes / 8);
  });

  test.each([
    { what: "uncompressed bytes", bytes: Buffer.from("orders") },
    { what: "a truncated message", bytes: compressSync(randomBytes(100)).subarray(0, 50) },
    { what: "a message with a truncated header", bytes: compressSync(randomBytes(100)).subarray(0, 1) },
    { what: "a byte after the end", bytes: Buffer.concat([compressSync(randomBytes(100)), Buffer.of(0)]) },
    { what: "text after the end", bytes: Buffer.concat([compressSync(randomBytes(100)), Buffer.from("orders")]) },
  ])("refuses $what with InvalidArgument", async ({ bytes }) => {
    await expect(compression.decompress(bytes, limitBytes)).rejects.toMatchObject({ code: Code.InvalidArgument });
    const read = buffer(compression.decodePieces(each(bytes), limitBytes, live));
    await expect(read).rejects.toMatchObject({ code: Code.InvalidArgument });
  });

  test("decodes an empty body and a body that arrives byte by byte", async () => {
    const bytes = randomBytes(limitBytes);
    const octets = Array.from(compressSync(bytes), (octet) => Buffer.of(octet));
    expect((await buffer(compression.decodePieces(each(...octets), limitBytes, live))).equals(bytes)).toBe(true);
    expect(await buffer(compression.decodePieces(each(), limitBytes, live))).toHaveLength(0);
  });

  test("rethrows the error that aborts a body", async () => {
    const broken = new Error("broken");
    const pieces = async function* (): AsyncGenerator<Uint8Array> {
      yield compressSync(randomBytes(limitBytes)).subarray(0, 100);
      throw broken;
    };
    await expect(buffer(compression.decodePieces(pieces(), limitBytes, live))).rejects.toBe(broken);
  });

  test("rethrows the error that aborts a body before its first byte", async () => {
    const broken = new Error("broken");
    const pieces = async function* (): AsyncGenerator<Uint8Array> {
      yield* [];
      throw broken;
    };
    await expect(buffer(compression.decodePieces(pieces(), limitBytes, live))).rejects.toBe(broken);
  });

  test("closes the source of a body when the reader stops", async () => {
    const packed = compressSync(randomBytes(1024 * 1024));
    const read = Promise.withResolvers<number>();
    const pieces = async function* (): AsyncGenerator<Uint8Array> {
      let at = 0;
      try {
        for (; at < packed.byteLength; at += 4096) yield packed.subarray(at, at + 4096);
      } finally {
        read.resolve(at);
      }
    };
    for await (const _ of compression.decodePieces(pieces(), limitBytes, live)) break;
    expect(await within(read.promise, "the end of the body")).toBeLessThan(packed.byteLength);
  });
});

async function* each(...pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

test.each([
  { name: "accepts a window of 8 MiB", windowLog: 23, want: "fulfilled" },
  { name: "refuses a window of 16 MiB", windowLog: 24, want: "rejected" },
])("zstd $name", async ({ windowLog, want }) => {
  // The magic number, a descriptor with the window in the next byte, and a one-byte raw block (RFC 8878 §3.1.1).
  const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3, 0b1001, 0, 0, 0x70]);
  const outcomes = await Promise.allSettled([
    zstd.decompress(frame, limitBytes),
    buffer(zstd.decodePieces(each(frame), limitBytes, live)),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual([want, want]);
});

describe("a br message with a window of 16 MiB", () => {
  // The bytes have only 16 distinct values, because incompressible bytes are stored without back-references.
  const text = randomBytes(2 ** 18).map((byte) => byte & 15);
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_QUALITY]: 9 };

  test.each([
    { what: "repeats a few bytes after 256 KiB", bytes: Buffer.concat([text.subarray(12), text.subarray(12, 24)]) },
    { what: "consists of two equal halves of 256 KiB", bytes: Buffer.concat([text, text]) },
    { what: "has only 100 bytes", bytes: text.subarray(0, 100) },
  ])("that $what is decompressed unchanged", async ({ bytes }) => {
    const packed = brotliCompressSync(bytes, { params });
    for (const limit of [bytes.byteLength, bytes.byteLength + 1, 2 ** 22, 2 ** 25]) {
      expect((await brotli.decompress(packed, limit)).length).toBe(bytes.byteLength);
      expect(Buffer.from(await brotli.decompress(packed, limit)).equals(bytes)).toBe(true);
    }
    await expect(brotli.decompress(packed, bytes.byteLength - 1)).rejects.toMatchObject({
      code: Code.ResourceExhausted,
    });
  });

  test("is decompressed only up to the size limit", async () => {
    const begun = brotliCompressSync(Buffer.alloc(300_000), { params, finishFlush: constants.BROTLI_OPERATION_FLUSH });
    // The rest is not a valid block (RFC 7932 §9.2, a reserved bit is set), but is after the limit.
    const broken = Buffer.concat([begun, Buffer.of(0x0e)]);
    const outcomes = [150_000, 300_000].map((limit) => brotli.decompress(broken, limit));
    const want = [{ reason: { code: Code.ResourceExhausted } }, { reason: { code: Code.InvalidArgument } }];
    expect(await Promise.allSettled(outcomes)).toMatchObject(want);
  });
});

test.each([gzip, brotli, zstd])("decoding a $name body throws the abort reason of its call", async (compression) => {
  const ended = new Error("ended");
  await expect(buffer(compression.decodePieces(each(), limitBytes, AbortSignal.abort(ended)))).rejects.toBe(ended);
});

test.each([gzip, brotli, zstd])("a $name body is decoded in chunks of 64 KiB", async (compression) => {
  const packed = await compression.compress(Buffer.alloc(200_000));
  const sizes: number[] = [];
  for await (const { byteLength } of compression.decodePieces(each(packed), bombBytes, live)) sizes.push(byteLength);
  expect(sizes).toEqual([65_536, 65_536, 65_536, 200_000 - 3 * 65_536]);
});

test("a br message with the smallest window is decompressed unchanged", async () => {
  const params = { [constants.BROTLI_PARAM_LGWIN]: 16 };
  for (let bytes = 1; bytes < 70_000; bytes = bytes * 2 + 1) {
    const message = randomBytes(bytes);
    const packed = brotliCompressSync(message, { params });
    expect(Buffer.from(await brotli.decompress(packed, bytes)).equals(message)).toBe(true);
  }
});

test("br compresses with quality 4", async () => {
  const text = Buffer.from(JSON.stringify(Array.from({ length: 100 }, (_, id) => ({ id, name: `order ${id * id}` }))));
  const quick = brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
  expect(Buffer.from(await brotli.compress(text))).toEqual(quick);
});

test.each([
  { name: "gzip", compression: gzip, windowKiB: 16 },
  { name: "br", compression: brotli, windowKiB: 32 },
  { name: "zstd", compression: zstd, windowKiB: 32 },
])("a $name stream compresses only repetitions within $windowKiB KiB", async ({ compression, windowKiB }) => {
  const sizeOfTwice = async (bytes: Uint8Array): Promise<number> => {
    const encoder = compression.openEncoder();
    const pieces = [await encoder.write(bytes), await encoder.end(bytes)];
    return pieces.reduce((sum, { byteLength }) => sum + byteLength, 0) / bytes.byteLength;
  };
  expect(await sizeOfTwice(randomBytes(windowKiB * 0.6 * 1024))).toBeLessThan(1.6);
  expect(await sizeOfTwice(randomBytes(windowKiB * 1.2 * 1024))).toBeGreaterThan(1.9);
});

test("a body above the ratio limit is refused before yielding bytes", async () => {
  const pieces: Uint8Array[] = [];
  const read = async (): Promise<void> => {
    const packed = compressQuickly(Buffer.alloc(bombBytes));
    for await (const piece of brotli.decodePieces(each(packed), 0, live)) pieces.push(piece);
  };
  await expect(read()).rejects.toMatchObject({ code: Code.ResourceExhausted });
  expect(pieces).toEqual([]);
});
