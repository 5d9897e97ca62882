import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { createTokenText, isMistyped } from "../src/static-token.ts";

const prefix = "orders_";

test("createTokenText appends a CRC-32 checksum to every token", () => {
  for (let n = 0; n < 100; n++) {
    const text = createTokenText(prefix);
    expect(text).toMatch(/^orders_\w+$/);
    expect(Number.parseInt(text.slice(-7), 36)).toBe(crc32(text.slice(0, -7)));
    expect(isMistyped(text, prefix)).toBe(false);
  }
});

const random = "0".repeat(50);
const checksum = crc32(`orders_${random}`).toString(36).padStart(7, "0");

test.each([
  { name: "a token with its checksum", text: `orders_${random}${checksum}`, want: false },
  { name: "a token with a wrong digit", text: `orders_1${random.slice(1)}${checksum}`, want: true },
  { name: "a token with a wrong checksum", text: `orders_${random}0000000`, want: true },
  // Tokens in these forms may be valid, but were not created by createTokenText.
  { name: "a truncated token", text: `orders_${random}`, want: false },
  { name: "a token with another prefix", text: `offers_${random}0000000`, want: false },
  { name: "a token of 43 base64url characters", text: "kgtvBLzoSt89sauqAGZ0lJH_ktBVNLejLri9BGLHG7w", want: false },
])("isMistyped returns $want if $name is given", ({ text, want }) => expect(isMistyped(text, prefix)).toBe(want));
