import { setImmediate as nextTurn } from "node:timers/promises";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { describe, expect, test } from "vitest";
import { decompressQueued } from "../../../../../src/protocols/envelope/compression.ts";
import { brotli, gzip, zstd } from "../../../../../src/protocols/compression/index.ts";

const message = new Uint8Array(1);

/** A built-in compression that finishes when the test resolves it. */
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

/** The exchange for a call that has not ended. */
const openExchange = (): Parameters<typeof decompressQueued>[3] => ({ abortReceiver: { clientAborted: () => {} } });

test("at most eight messages are decompressed concurrently", async () => {
  const { compression, begun } = openSlow();
  const read = Array.from({ length: 12 }, () => decompressQueued(compression, message, 1, openExchange()));
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

test("a queued message is not decompressed after its call has ended", async () => {
  const { compression, begun } = openSlow();
  const first = Array.from({ length: 8 }, () => decompressQueued(compression, message, 1, openExchange()));
  const exchange = openExchange();
  const abandoned = decompressQueued(compression, message, 1, exchange);
  const last = decompressQueued(compression, message, 1, openExchange());
  exchange.abortReceiver = undefined;
  for (const { resolve } of begun) resolve(message);
  await expect(abandoned).rejects.toThrow("the client disconnected");
  await nextTurn();
  begun[8]?.resolve(message);
  await Promise.all([...first, last]);
  expect(begun).toHaveLength(9);
});

test("a custom compression that never finishes does not delay others", async () => {
  const { compression, begun } = openSlow();
  const { name, compress, decompress } = compression;
  const first = Array.from({ length: 9 }, () =>
    decompressQueued({ name, compress, decompress }, message, 1, openExchange()),
  );
  expect(begun).toHaveLength(9);
  const other = decompressQueued(compression, message, 1, openExchange());
  expect(begun).toHaveLength(10);
  for (const { resolve } of begun) resolve(message);
  await Promise.all([...first, other]);
});

/** Empty lines, of which 51 bytes in br fill a 16 MiB window. */
const bombBytes = 2 ** 24;
const bombs = 100;
/** An uncompressed 70 KB message. */
const text = Buffer.from(JSON.stringify(Array.from({ length: 2_000 }, (_, id) => ({ id, name: `order ${id ** 3}` }))));
const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_QUALITY]: 5 };

test.each([
  { compression: gzip, compressSync: gzipSync },
  { compression: zstd, compressSync: zstdCompressSync },
  { compression: brotli, compressSync: (bytes: Uint8Array) => brotliCompressSync(bytes, { params }) },
])(
  "a hundred compression bombs do not delay another $compression.name message",
  async ({ compression, compressSync }) => {
    const bomb = compressSync(Buffer.alloc(bombBytes));
    const exchange = openExchange();
    let refused = 0;
    const refusals = Array.from({ length: bombs }, () =>
      decompressQueued(compression, bomb, bombBytes / 4, exchange).catch(() => refused++),
    );
    const read = await decompressQueued(compression, compressSync(text), bombBytes / 4, openExchange());
    const before = refused;
    // Messages that are still queued are not decompressed.
    exchange.abortReceiver = undefined;
    await Promise.all(refusals);
    expect(Buffer.from(read).equals(text)).toBe(true);
    expect(before).toBeLessThan(bombs / 2);
  },
);

describe.each([
  { compression: gzip, compressSync: gzipSync },
  { compression: zstd, compressSync: zstdCompressSync },
  { compression: brotli, compressSync: brotliCompressSync },
])("the queue for compression bombs in $compression.name", ({ compression, compressSync }) => {
  const smallBytes = 64 * 1024;
  const zeros = (bytes: number): Uint8Array => compressSync(new Uint8Array(bytes));
  const refused = { status: "rejected", reason: { code: Code.ResourceExhausted } };
  const invalid = { status: "rejected", reason: { code: Code.InvalidArgument } };

  test.each(
    // oxfmt-ignore
    [
      { name: "does not hold a compression bomb of 64 KiB", packed: zeros(smallBytes), limit: 2 ** 20, waits: false },
      { name: "holds a message above 64 KiB with a ratio above 100", packed: zeros(smallBytes + 1), limit: 2 ** 20,
        waits: true },
      { name: "does not hold ordinary text above 64 KiB", packed: compressSync(text), limit: 2 ** 20, waits: false },
      { name: "does not hold a message that exceeds a limit of 64 KiB", packed: zeros(smallBytes + 1),
        limit: smallBytes, waits: false, want: refused },
      { name: "holds a message above a limit of 1 MiB until it is refused", packed: zeros(2 ** 20 + 1), limit: 2 ** 20,
        waits: true, want: refused },
      { name: "holds an invalid message until it is refused", packed: message, limit: 2 ** 20, waits: true,
        want: invalid },
    ],
  )("$name", async ({ packed, limit, waits, want = { status: "fulfilled" } }) => {
    const others = openSlow();
    const running = [1, 2].map(() => decompressQueued(others.compression, message, 2 ** 20, openExchange()));
    const other = decompressQueued(others.compression, message, 1, openExchange());
    let done = false;
    const read = decompressQueued(compression, packed, limit, openExchange()).finally(() => (done = true));
    const outcome = Promise.allSettled([read]);
    // When this message has finished, every other message that is not queued has finished, too.
    if (waits) await decompressQueued(gzip, gzipSync(text), 2 ** 20, openExchange());
    else await outcome;
    for (const { resolve } of others.begun) resolve(message);
    expect(done).toBe(!waits);
    expect(await outcome).toMatchObject([want]);
    await Promise.all([...running, other]);
  });
});
