import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { expect, test } from "vitest";
import { decompressInTurn } from "../../../src/gateway/protocols/decompress-in-turn.ts";
import { brotli, gzip, zstd } from "../../../src/gateway/zlib/index.ts";

const message = new Uint8Array(1);

/** One of our own compressions, which takes as long as it is told. */
function openSlow(): {
  readonly compression: Compression;
  readonly begun: PromiseWithResolvers<Uint8Array<ArrayBuffer>>[];
} {
  const begun: PromiseWithResolvers<Uint8Array<ArrayBuffer>>[] = [];
  const decompress = (): Promise<Uint8Array<ArrayBuffer>> => {
    const decompressed = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
    begun.push(decompressed);
    return decompressed.promise;
  };
  return { compression: { ...brotli, decompress }, begun };
}

/** The exchange of a call that has not ended. */
function openExchange(): Parameters<typeof decompressInTurn>[3] {
  return { abortReceiver: { aborted: () => {} } };
}

test("eight messages are decompressed at a time, however they end", async () => {
  const { compression, begun } = openSlow();
  const read = Array.from({ length: 12 }, () => decompressInTurn(compression, message, 1, openExchange()));
  const outcomes = Promise.allSettled(read);
  expect(begun).toHaveLength(8);
  begun[0]?.reject(new Error("no message"));
  begun[1]?.resolve(message);
  await nextTurn();
  expect(begun).toHaveLength(10);
  for (const { resolve } of begun) resolve(message);
  await nextTurn();
  for (const { resolve } of begun) resolve(message);
  expect((await outcomes).map(({ status }) => status === "fulfilled")).toEqual([false, ...Array(11).fill(true)]);
  expect(begun).toHaveLength(12);
});

test("a message whose call has ended meanwhile is not decompressed", async () => {
  const { compression, begun } = openSlow();
  const first = Array.from({ length: 8 }, () => decompressInTurn(compression, message, 1, openExchange()));
  const exchange = openExchange();
  const abandoned = decompressInTurn(compression, message, 1, exchange);
  const last = decompressInTurn(compression, message, 1, openExchange());
  exchange.abortReceiver = undefined;
  for (const { resolve } of begun) resolve(message);
  await expect(abandoned).rejects.toThrow("gone away");
  await nextTurn();
  begun[8]?.resolve(message);
  await Promise.all([...first, last]);
  expect(begun).toHaveLength(9);
});

test("a compression of the program's own holds up no other, although it is never done", async () => {
  const { compression, begun } = openSlow();
  const { name, compress, decompress } = compression;
  const first = Array.from({ length: 9 }, () =>
    decompressInTurn({ name, compress, decompress }, message, 1, openExchange()),
  );
  expect(begun).toHaveLength(9);
  const other = decompressInTurn(compression, message, 1, openExchange());
  expect(begun).toHaveLength(10);
  for (const { resolve } of begun) resolve(message);
  await Promise.all([...first, other]);
});

test.each([
  { compression: gzip, compressSync: gzipSync },
  { compression: zstd, compressSync: zstdCompressSync },
])("a small message in $compression.name does not wait for large ones", async ({ compression, compressSync }) => {
  const slow = openSlow();
  const first = Array.from({ length: 8 }, () => decompressInTurn(slow.compression, message, 1, openExchange()));
  const read = (bytes: Uint8Array, readMaxBytes: number): Promise<Uint8Array> =>
    decompressInTurn(compression, bytes, readMaxBytes, openExchange());
  const small = new Uint8Array(64 * 1024);
  const large = new Uint8Array(small.byteLength + 1);
  expect(await read(compressSync(small), large.byteLength)).toEqual(small);
  await expect(read(message, large.byteLength)).rejects.toMatchObject({ code: Code.InvalidArgument });
  const later = [read(compressSync(large), large.byteLength), read(compressSync(large), small.byteLength)];
  const outcomes = Promise.allSettled(later);
  for (const { resolve } of slow.begun) resolve(message);
  expect(await outcomes).toMatchObject([
    { status: "fulfilled", value: large },
    { status: "rejected", reason: { code: Code.ResourceExhausted } },
  ]);
  await Promise.all(first);
});
