import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseBase64 } from "../../../../src/protobuf/messages/json/text-forms.ts";

test.each([
  { why: "an empty string", text: "", want: [] },
  { why: "the standard alphabet with padding", text: "+/8=", want: [0xfb, 0xff] },
  { why: "the standard alphabet without padding", text: "+/8", want: [0xfb, 0xff] },
  { why: "the URL-safe alphabet with padding", text: "-_8=", want: [0xfb, 0xff] },
  { why: "the URL-safe alphabet without padding", text: "-_8", want: [0xfb, 0xff] },
  { why: "two padding characters", text: "QQ==", want: [0x41] },
])("parseBase64() decodes $why to bytes", ({ text, want }) => expect(parseBase64(text)).toEqual(Uint8Array.from(want)));

test.each([
  { why: "a single digit", text: "Q" },
  { why: "five digits", text: "QQQQQ" },
  { why: "only padding", text: "=" },
  { why: "only two padding characters", text: "==" },
  { why: "too little padding", text: "QQ=" },
  { why: "too much padding", text: "QQQ==" },
  { why: "padding after a full group", text: "QQQQ=" },
  { why: "padding in the middle", text: "QQ==QQ==" },
  { why: "a space", text: "QQ QQ" },
  { why: "a line feed at the end", text: "QQ==\n" },
  { why: "a character outside the alphabet", text: "QQ!Q" },
  { why: "a letter beyond ASCII", text: "QQé" },
])("parseBase64() refuses $why as base64", ({ text }) => expect(parseBase64(text)).toBeUndefined());

test("parseBase64() decodes any encoded bytes, and refuses any other character", () =>
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
  ));

test("parseBase64() returns bytes in a separate buffer", () => expect(parseBase64("QQ==")?.buffer.byteLength).toBe(1));
