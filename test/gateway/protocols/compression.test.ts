import { randomBytes } from "node:crypto";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { brotli, gzip, negotiateEncodings, zstd } from "../../../src/gateway/protocols/compression.ts";

const compressions = [
  { name: "gzip", compression: gzip, compressSync: gzipSync },
  { name: "br", compression: brotli, compressSync: compressQuickly },
  { name: "zstd", compression: zstd, compressSync: zstdCompressSync },
];

// Brotli takes its time by default.
function compressQuickly(bytes: Uint8Array): Buffer {
  return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } });
}

const limitBytes = 1000;
const bombBytes = 16 * 1024 * 1024;

describe.each(compressions)("$name", ({ name, compression, compressSync }) => {
  test("is called what the standards call it", () => {
    expect(compression.name).toBe(name);
  });

  test("gives back what it packed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: limitBytes }), async (bytes) => {
        const packed = await compression.compress(bytes);
        expect(Buffer.from(await compression.decompress(packed, limitBytes)).equals(bytes)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test("takes nothing for nothing, as some clients send it", async () => {
    expect(await compression.decompress(new Uint8Array(0), limitBytes)).toHaveLength(0);
  });

  test("takes just as much as the limit", async () => {
    const bytes = randomBytes(limitBytes);
    expect(Buffer.from(await compression.decompress(compressSync(bytes), limitBytes)).equals(bytes)).toBe(true);
  });

  test("refuses one byte more than the limit", async () => {
    const packed = compressSync(randomBytes(limitBytes + 1));
    await expect(compression.decompress(packed, limitBytes)).rejects.toMatchObject({ code: Code.ResourceExhausted });
  });

  test("stops at the limit, however much a bomb would make", async () => {
    const bomb = compressSync(Buffer.alloc(bombBytes));
    const before = process.memoryUsage().arrayBuffers;
    await expect(compression.decompress(bomb, limitBytes)).rejects.toMatchObject({ code: Code.ResourceExhausted });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(bombBytes / 8);
  });

  test.each([
    { what: "what is not of the format", given: Buffer.from("plants") },
    { what: "what is cut short", given: compressSync(randomBytes(100)).subarray(0, 50) },
    { what: "what ends within its first bytes", given: compressSync(randomBytes(100)).subarray(0, 1) },
    { what: "a byte behind the end", given: Buffer.concat([compressSync(randomBytes(100)), Buffer.of(0)]) },
    { what: "text behind the end", given: Buffer.concat([compressSync(randomBytes(100)), Buffer.from("plants")]) },
  ])("refuses $what as the client's mistake", async ({ given }) => {
    await expect(compression.decompress(given, limitBytes)).rejects.toMatchObject({ code: Code.InvalidArgument });
  });
});

test.each([
  { name: "takes a window of 8 MiB", windowLog: 23, want: "fulfilled" },
  { name: "refuses a larger window, whatever is in it", windowLog: 24, want: "rejected" },
])("zstd $name", async ({ windowLog, want }) => {
  // RFC 8878 §3.1.1: the magic number, a descriptor that leaves the window to the next byte, and a raw block of one byte.
  const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3, 0b1001, 0, 0, 0x70]);
  const [outcome] = await Promise.allSettled([zstd.decompress(frame, limitBytes)]);
  expect(outcome.status).toBe(want);
});

describe("negotiateEncodings", () => {
  const available = [gzip, brotli, zstd];
  const negotiate = (sent: string | null, accepted: string | null): Record<string, string | undefined> => {
    const { request, response, problem } = negotiateEncodings(available, sent, accepted, "grpc-accept-encoding");
    return { request: request?.name, response: response?.name, problem: problem?.rawMessage };
  };

  test.each([
    { sent: null, accepted: null, request: undefined, response: undefined },
    { sent: "identity", accepted: "", request: undefined, response: undefined },
    { sent: "", accepted: "gzip", request: undefined, response: "gzip" },
    { sent: "gzip", accepted: null, request: "gzip", response: "gzip" },
    { sent: "gzip", accepted: "identity", request: "gzip", response: undefined },
    { sent: "gzip", accepted: "zstd, gzip", request: "gzip", response: "zstd" },
    { sent: null, accepted: "deflate,br", request: undefined, response: "br" },
    { sent: null, accepted: "gzip;q=0, br;q=0.5", request: undefined, response: "br" },
    { sent: null, accepted: "gzip;q=0.000", request: undefined, response: undefined },
    { sent: null, accepted: " GZIP ", request: undefined, response: "gzip" },
    { sent: null, accepted: "deflate", request: undefined, response: undefined },
    { sent: null, accepted: `${"x,".repeat(15)}gzip`, request: undefined, response: "gzip" },
    { sent: null, accepted: `${"x,".repeat(16)}gzip`, request: undefined, response: undefined },
  ])("reads $sent and answers clients that accept $accepted by $response", ({ sent, accepted, request, response }) => {
    expect(negotiate(sent, accepted)).toEqual({ request, response, problem: undefined });
  });

  test.each(["deflate", "GZIP", "gzip, br", "constructor"])("refuses %j and lists what it reads", (sent) => {
    const { problem, acceptFields } = negotiateEncodings(available, sent, null, "grpc-accept-encoding");
    expect(problem).toMatchObject({ code: Code.Unimplemented });
    expect(acceptFields).toEqual(["grpc-accept-encoding", "gzip,br,zstd"]);
  });
});
