import { array, assert, asyncProperty, bigInt, integer, oneof, stringMatching } from "fast-check";
import { describe, expect, test } from "vitest";
import { readIds } from "../../../src/stores/records/import-plants.ts";

const maxBatch = 10_000;

async function read(text: string, size = Number.POSITIVE_INFINITY): Promise<bigint[]> {
  const ids: bigint[] = [];
  for await (const batch of readIds(chunksOf(Buffer.from(text), size), maxBatch)) ids.push(...batch);
  return ids;
}

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe("readIds()", () => {
  test.each([
    ["lines with one id each", "1\n-2\n0\n", [1n, -2n, 0n]],
    ["a last line without a line feed", "1\n2", [1n, 2n]],
    ["CRLF line ends", "1\r\n2\r\n", [1n, 2n]],
    ["empty lines", "\n1\n\r\n\n2\n\n", [1n, 2n]],
    ["an empty file", "", []],
    ["the limits of int64", "-9223372036854775808\n9223372036854775807\n", [-(2n ** 63n), 2n ** 63n - 1n]],
  ])("accepts %s as input", (_name, text, want) => expect(read(text)).resolves.toEqual(want));

  test.each([
    ["a word", "1\n2\nrose\n", 'line 3 is not a plant id: "rose"'],
    ["a letter after digits", "12a\n", 'line 1 is not a plant id: "12a"'],
    ["a sign after digits", "12/\n", 'line 1 is not a plant id: "12/"'],
    ["a leading zero", "01\n", 'line 1 is not a plant id: "01"'],
    ["minus zero", "-0\n", 'line 1 is not a plant id: "-0"'],
    ["a plus sign", "+1\n", 'line 1 is not a plant id: "+1"'],
    ["a space before the id", " 1\n", 'line 1 is not a plant id: " 1"'],
    ["a minus sign alone", "-\n", 'line 1 is not a plant id: "-"'],
    ["a leading zero in a negative id", "-01\n", 'line 1 is not a plant id: "-01"'],
    ["two minus signs", "--1\n", 'line 1 is not a plant id: "--1"'],
    ["two ids on one line", "1,2\n", 'line 1 is not a plant id: "1,2"'],
    ["a fraction", "1.0\n", 'line 1 is not a plant id: "1.0"'],
    ["an id above int64", "9223372036854775808\n", /^line 1 .*"9223372036854775808"$/],
    ["an id below int64", "-9223372036854775809\n", /^line 1 .*"-9223372036854775809"$/],
    ["digits of another script", "٧\n", /^line 1 is not/],
    ["a byte order mark", "\uFEFF1\n", /^line 1 starts with a byte order mark; save the file as UTF-8 without one$/],
    ["64 digits", `${"7".repeat(64)}\n`, /^line 1 is not a plant id: "7{64}"$/],
    ["a very long line", `1\n${"7".repeat(100_000)}`, /^line 2 is not a plant id: "7{64}…"$/],
  ])("refuses %s, and reports the line number", async (_name, text, message) => {
    await expect(read(text)).rejects.toThrow(message);
    await expect(read(text, 1)).rejects.toThrow(message);
  });

  test("yields no empty batch", () =>
    expect(readIds(chunksOf(Buffer.from("\n\r\n"), 1), maxBatch).next()).resolves.toMatchObject({ done: true }));

  test("refuses a very long line before its end arrives", async () => {
    let chunks = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      // The text ends, in case the reader does not stop.
      while (chunks++ < 1_000) yield Buffer.alloc(64, "7");
    }
    const reading = (async () => {
      for await (const ids of readIds(endless(), maxBatch)) expect(ids).toEqual([]);
    })();
    await expect(reading).rejects.toThrow(/^line 1 is not a plant id: "7{64}…"$/);
    expect(chunks).toBe(2);
  });

  test("yields no ids from the batch with the invalid line", async () => {
    const text = `${"5\n".repeat(10_000)}${"6\n".repeat(10)}x\n`;
    const received: bigint[] = [];
    const reading = (async () => {
      for await (const ids of readIds(chunksOf(Buffer.from(text), 1_000), maxBatch)) received.push(...ids);
    })();
    await expect(reading).rejects.toThrow("line 10011 is not a plant id");
    expect(received).toEqual(Array<bigint>(10_000).fill(5n));
  });

  test("reads all ids regardless of chunk boundaries", async () =>
    await assert(
      asyncProperty(array(anyId), integer({ min: 1, max: 30 }), async (ids, size) => {
        expect(await read(ids.map((id) => `${id}\n`).join(""), size)).toEqual(ids);
      }),
    ));

  test("refuses the first line that is not a canonical int64", async () => {
    const line = oneof(
      anyId.map(String),
      stringMatching(/^-?[0-9]{1,20}$/),
      stringMatching(/^[0-9]{0,12}[-/:x][0-9]{0,9}$/),
    );
    await assert(
      asyncProperty(array(line, { maxLength: 5 }), async (lines) => {
        const bad = lines.findIndex((text) => !isWrittenId(text));
        const reading = read(lines.map((text) => `${text}\n`).join(""));
        if (bad < 0) expect(await reading).toEqual(lines.map(BigInt));
        else await expect(reading).rejects.toThrow(`line ${bad + 1} is not a plant id: "${lines[bad]}"`);
      }),
    );
  });
});

/** Ids with every length, and ids near the parsers' limits. */
const anyId = oneof(
  bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  bigInt({ min: -(10n ** 10n), max: 10n ** 10n }),
  bigInt({ min: 9_223_372_035_999_999_990n, max: 9_223_372_036_000_000_009n }),
  bigInt({ min: -20n, max: 200n }),
);

function isWrittenId(text: string): boolean {
  return /^-?[0-9]+$/.test(text) && String(BigInt.asIntN(64, BigInt(text))) === text;
}
