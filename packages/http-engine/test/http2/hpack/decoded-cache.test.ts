import { describe, expect, test, vi } from "vitest";
import * as fc from "fast-check";
import { DecodedCache } from "../../../src/http2/hpack/decoded-cache.ts";

const sizeBytesMax = 1000;

function remembering(texts: readonly string[], valueBytes = 0): DecodedCache<string> {
  const remembered = new DecodedCache<string>(sizeBytesMax);
  for (const text of texts) remembered.set(Buffer.from(text, "latin1"), 0, text.length, `read ${text}`, valueBytes);
  return remembered;
}

function find(remembered: DecodedCache<string>, text: string): string | undefined {
  // Between other bytes, like a block in its chunk.
  return remembered.get(Buffer.from(`<${text}>`, "latin1"), 1, text.length + 1);
}

describe("cached bytes", () => {
  test.each([
    { name: "the only ones", texts: ["abc"], find: "abc" },
    { name: "some of several", texts: ["abc", "abd", "ab"], find: "abd" },
    { name: "more than a loop compares", texts: ["x".repeat(65)], find: "x".repeat(65) },
    { name: "empty", texts: ["", "a"], find: "" },
    { name: "non-ASCII octets", texts: ["\u00ff\u0000\u0080"], find: "\u00ff\u0000\u0080" },
    { name: "as many as fit", texts: ["x".repeat(744)], find: "x".repeat(744) },
  ])("that are $name are found repeatedly", ({ texts, find: text }) => {
    const remembered = remembering(texts);
    const want = `read ${text}`;
    expect([find(remembered, text), find(remembered, text), find(remembered, text)]).toEqual([want, want, want]);
  });

  test.each([
    { name: "the last octet", text: "abd" },
    { name: "the first octet", text: "bbc" },
    { name: "a missing octet", text: "ab" },
    { name: "an additional octet", text: "abcd" },
    { name: "being empty", text: "" },
    { name: "having only zeros", text: "\0\0\0" },
    { name: "being too large to cache", text: "abc".repeat(400) },
  ])("that differ in $name are not mistaken for others", ({ text }) => {
    const remembered = remembering(["abc"]);
    expect([find(remembered, text), find(remembered, "abc"), find(remembered, "abc"), find(remembered, text)]).toEqual([
      undefined,
      "read abc",
      "read abc",
      undefined,
    ]);
  });

  test.each([
    { name: "the bytes", texts: ["a".repeat(300)], last: "b".repeat(189), valueBytes: 0 },
    { name: "the values", texts: ["a"], last: "b", valueBytes: 244 },
    { name: "256 per entry", texts: ["a", "b", "c"], last: "d", valueBytes: 0 },
  ])("are cleared when too many ($name are counted)", ({ texts, last, valueBytes }) => {
    const remembered = remembering(texts, valueBytes);
    const want = texts.map((text) => `read ${text}`);
    const findAll = (): unknown[] => texts.map((text) => find(remembered, text));
    expect([findAll(), findAll()]).toEqual([want, want]);
    remembered.set(Buffer.from(last), 0, last.length, `read ${last}`, valueBytes);
    expect([...findAll(), find(remembered, last)]).toEqual([...texts.map(() => undefined), `read ${last}`]);
  });

  test.each([
    { name: "bytes", text: "a".repeat(745), valueBytes: 0 },
    { name: "a value", text: "a", valueBytes: 744 },
  ])("that are too large ($name) are not cached, and clear no others", ({ text, valueBytes }) => {
    const remembered = remembering(["abc"]);
    remembered.set(Buffer.from(text), 0, text.length, "too much", valueBytes);
    expect([find(remembered, text), find(remembered, "abc")]).toEqual([undefined, "read abc"]);
  });

  test.each([
    { name: "of equal length", texts: ["abc", "abd"] },
    { name: "of different lengths", texts: ["abc", "ab"] },
    { name: "longer than a loop compares", texts: ["x".repeat(65), `${"x".repeat(64)}y`] },
  ])("are found when they alternate with others, $name, and cleared with them", ({ texts }) => {
    const remembered = remembering(texts);
    const turns = [...texts, ...texts, ...texts];
    expect(turns.map((text) => find(remembered, text))).toEqual(turns.map((text) => `read ${text}`));
    remembered.clear();
    expect(texts.map((text) => find(remembered, text))).toEqual([undefined, undefined]);
  });

  test("are found without a map lookup when two alternate", () => {
    const remembered = remembering(["abc", "ab"]);
    for (const text of ["abc", "ab"]) find(remembered, text);
    const chunk = Buffer.from("abcab");
    const toText = vi.spyOn(chunk, "toString");
    expect([remembered.get(chunk, 0, 3), remembered.get(chunk, 3, 5)]).toEqual(["read abc", "read ab"]);
    expect(toText).not.toHaveBeenCalled();
  });

  test("are copied, so that their chunk may be overwritten", () => {
    const remembered = new DecodedCache<string>(sizeBytesMax);
    const chunk = Buffer.from("abc");
    remembered.set(chunk, 0, 3, "read abc", 0);
    expect(remembered.get(chunk, 0, 3)).toBe("read abc");
    chunk.fill("x");
    expect([remembered.get(chunk, 0, 3), find(remembered, "abc")]).toEqual([undefined, "read abc"]);
  });

  test("have the value stored for them, or none, after any sequence", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 40 })), (texts) => {
        const remembered = new DecodedCache<string>(sizeBytesMax);
        for (const text of texts) {
          expect([undefined, `read ${text}`]).toContain(find(remembered, text));
          remembered.set(Buffer.from(text), 0, text.length, `read ${text}`, 0);
          expect(find(remembered, text)).toBe(`read ${text}`);
        }
      }),
    );
  });

  test("are looked up rarely while nothing repeats, and found again later", () => {
    const remembered = new DecodedCache<string>(100_000);
    const isFound = (text: string): boolean => {
      const found = find(remembered, text) !== undefined;
      if (!found) remembered.set(Buffer.from(text), 0, text.length, `read ${text}`, 0);
      return found;
    };
    const neverRepeated = Array.from({ length: 200 }, (_, at) => isFound(`path ${at}`));
    expect(neverRepeated).not.toContain(true);
    const kept = neverRepeated.filter((_, at) => find(remembered, `path ${at}`) !== undefined);
    expect(kept.length).toBeLessThan(100);
    const repeated = Array.from({ length: 40 }, () => isFound("one path"));
    expect(repeated.lastIndexOf(false)).toBeLessThan(34);
  });
});
