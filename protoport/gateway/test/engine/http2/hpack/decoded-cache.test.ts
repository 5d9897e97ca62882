import { describe, expect, test, vi } from "vitest";
import * as fc from "fast-check";
import { DecodedCache } from "../../../../src/engine/http2/hpack/decoded-cache.ts";

const maxSizeBytes = 1000;

function remembering(texts: readonly string[], valueBytes = 0): DecodedCache<string> {
  const remembered = new DecodedCache<string>(maxSizeBytes);
  for (const text of texts) remembered.set(Buffer.from(text, "latin1"), 0, text.length, `read ${text}`, valueBytes);
  return remembered;
}

function find(remembered: DecodedCache<string>, text: string): string | undefined {
  // Between other bytes, like a block in its chunk.
  return remembered.get(Buffer.from(`<${text}>`, "latin1"), 1, text.length + 1);
}

describe("DecodedCache", () => {
  test.each([
    { name: "the only cached bytes", texts: ["abc"], find: "abc" },
    { name: "the second of three entries", texts: ["abc", "abd", "ab"], find: "abd" },
    { name: "more than 64 bytes", texts: ["x".repeat(65)], find: "x".repeat(65) },
    { name: "empty bytes", texts: ["", "a"], find: "" },
    { name: "non-ASCII octets", texts: ["\u00ff\u0000\u0080"], find: "\u00ff\u0000\u0080" },
    { name: "bytes of the maximum size", texts: ["x".repeat(744)], find: "x".repeat(744) },
  ])("finds $name repeatedly", ({ texts, find: text }) => {
    const remembered = remembering(texts);
    const want = `read ${text}`;
    expect([find(remembered, text), find(remembered, text), find(remembered, text)]).toEqual([want, want, want]);
  });

  test.each([
    { name: "bytes with another last octet", text: "abd" },
    { name: "bytes with another first octet", text: "bbc" },
    { name: "bytes without the last octet", text: "ab" },
    { name: "bytes with an additional octet", text: "abcd" },
    { name: "empty bytes", text: "" },
    { name: "zero octets", text: "\0\0\0" },
    { name: "bytes that are too large to cache", text: "abc".repeat(400) },
  ])('does not find $name after caching "abc"', ({ text }) => {
    const remembered = remembering(["abc"]);
    const found = [text, "abc", "abc", text].map((value) => find(remembered, value));
    expect(found).toEqual([undefined, "read abc", "read abc", undefined]);
  });

  test.each([
    { name: "the keys are too large", texts: ["a".repeat(300)], last: "b".repeat(189), valueBytes: 0 },
    { name: "the values are too large", texts: ["a"], last: "b", valueBytes: 244 },
    { name: "there are too many entries", texts: ["a", "b", "c"], last: "d", valueBytes: 0 },
  ])("removes all entries when $name", ({ texts, last, valueBytes }) => {
    const remembered = remembering(texts, valueBytes);
    const want = texts.map((text) => `read ${text}`);
    const findAll = (): unknown[] => texts.map((text) => find(remembered, text));
    expect([findAll(), findAll()]).toEqual([want, want]);
    remembered.set(Buffer.from(last), 0, last.length, `read ${last}`, valueBytes);
    expect([...findAll(), find(remembered, last)]).toEqual([...texts.map(() => undefined), `read ${last}`]);
  });

  test.each([
    { name: "a key", text: "a".repeat(745), valueBytes: 0 },
    { name: "a value", text: "a", valueBytes: 744 },
  ])("does not cache $name over the limit, and keeps other entries", ({ text, valueBytes }) => {
    const remembered = remembering(["abc"]);
    remembered.set(Buffer.from(text), 0, text.length, "too much", valueBytes);
    expect([find(remembered, text), find(remembered, "abc")]).toEqual([undefined, "read abc"]);
  });

  test.each([
    { name: "keys of equal length", texts: ["abc", "abd"] },
    { name: "keys of different lengths", texts: ["abc", "ab"] },
    { name: "keys longer than 64 bytes", texts: ["x".repeat(65), `${"x".repeat(64)}y`] },
  ])("finds alternating $name until it is cleared", ({ texts }) => {
    const remembered = remembering(texts);
    const turns = [...texts, ...texts, ...texts];
    expect(turns.map((text) => find(remembered, text))).toEqual(turns.map((text) => `read ${text}`));
    remembered.clear();
    expect(texts.map((text) => find(remembered, text))).toEqual([undefined, undefined]);
  });

  test("finds two alternating keys without a map lookup", () => {
    const remembered = remembering(["abc", "ab"]);
    for (const text of ["abc", "ab"]) find(remembered, text);
    const chunk = Buffer.from("abcab");
    const toText = vi.spyOn(chunk, "toString");
    expect([remembered.get(chunk, 0, 3), remembered.get(chunk, 3, 5)]).toEqual(["read abc", "read ab"]);
    expect(toText).not.toHaveBeenCalled();
  });

  test("copies the bytes, so their chunk may be overwritten", () => {
    const remembered = new DecodedCache<string>(maxSizeBytes);
    const chunk = Buffer.from("abc");
    remembered.set(chunk, 0, 3, "read abc", 0);
    expect(remembered.get(chunk, 0, 3)).toBe("read abc");
    chunk.fill("x");
    expect([remembered.get(chunk, 0, 3), find(remembered, "abc")]).toEqual([undefined, "read abc"]);
  });

  test("never returns the value of other bytes", () =>
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 40 })), (texts) => {
        const remembered = new DecodedCache<string>(maxSizeBytes);
        for (const text of texts) {
          expect([undefined, `read ${text}`]).toContain(find(remembered, text));
          remembered.set(Buffer.from(text), 0, text.length, `read ${text}`, 0);
          expect(find(remembered, text)).toBe(`read ${text}`);
        }
      }),
    ));

  test("caches any repeated key, but under half of the keys that never repeat", () => {
    const remembered = new DecodedCache<string>(100_000);
    const isFound = (text: string): boolean => {
      const found = find(remembered, text) !== undefined;
      if (!found) remembered.set(Buffer.from(text), 0, text.length, `read ${text}`, 0);
      return found;
    };
    const neverRepeated = Array.from({ length: 200 }, (_, at) => isFound(`path ${at}`));
    expect(neverRepeated).not.toContain(true);
    expect(neverRepeated.filter((_, at) => find(remembered, `path ${at}`) !== undefined).length).toBeLessThan(100);
    expect(Array.from({ length: 40 }, () => isFound("one path")).lastIndexOf(false)).toBeLessThan(34);
  });
});
