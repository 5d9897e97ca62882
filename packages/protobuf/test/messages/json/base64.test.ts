import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseBase64 } from "../../../src/messages/json/base64.ts";

describe("parseBase64()", () => {
  test.each([
    { why: "an empty string", text: "", want: [] },
    { why: "standard, padded", text: "+/8=", want: [0xfb, 0xff] },
    { why: "standard, without padding", text: "+/8", want: [0xfb, 0xff] },
    { why: "url-safe, padded", text: "-_8=", want: [0xfb, 0xff] },
    { why: "url-safe, without padding", text: "-_8", want: [0xfb, 0xff] },
    { why: "two padding characters", text: "QQ==", want: [0x41] },
    { why: "a single digit", text: "Q", want: undefined },
    { why: "five digits", text: "QQQQQ", want: undefined },
    { why: "only padding", text: "=", want: undefined },
    { why: "only two padding characters", text: "==", want: undefined },
    { why: "too little padding", text: "QQ=", want: undefined },
    { why: "too much padding", text: "QQQ==", want: undefined },
    { why: "padding after a full group", text: "QQQQ=", want: undefined },
    { why: "padding in the middle", text: "QQ==QQ==", want: undefined },
    { why: "a space", text: "QQ QQ", want: undefined },
    { why: "a line feed at the end", text: "QQ==\n", want: undefined },
    { why: "another character", text: "QQ!Q", want: undefined },
    { why: "a letter beyond ASCII", text: "QQé", want: undefined },
  ])("reads $why as base64", ({ text, want }) => {
    const bytes = parseBase64(text);
    expect(bytes === undefined ? undefined : [...bytes]).toEqual(want);
  });

  test("decodes any encoded bytes, and refuses any other character", () => {
    fc.assert(
      fc.property(
        fc.uint8Array(),
        fc.nat(),
        fc.constantFrom("!", " ", "\u0141", "=", "\u00e9", "\0"),
        (bytes, at, other) => {
          const padded = Buffer.from(bytes).toString("base64");
          const url = Buffer.from(bytes).toString("base64url");
          for (const text of [padded, padded.replaceAll("=", ""), url]) expect(parseBase64(text)).toEqual(bytes);
          const digits = padded.replaceAll("=", "");
          const cut = at % (digits.length + 1);
          expect(parseBase64(digits.slice(0, cut) + other + digits.slice(cut + 1) + "A")).toBeUndefined();
        },
      ),
    );
  });

  test("returns bytes in a separate buffer", () => {
    expect(parseBase64("QQ==")?.buffer.byteLength).toBe(1);
  });
});
