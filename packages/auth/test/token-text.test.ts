import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { createTokenText, isMistyped } from "../src/token-text.ts";

const prefix = "orders_";

test("every token ends in its checksum", () => {
  for (let made = 0; made < 100; made++) {
    const text = createTokenText(prefix);
    expect(text).toMatch(/^orders_\w+$/);
    expect(Number.parseInt(text.slice(-7), 36)).toBe(crc32(text.slice(0, -7)));
    expect(isMistyped(text, prefix)).toBe(false);
  }
});

const random = "0".repeat(50);
const checksum = crc32(`orders_${random}`).toString(36).padStart(7, "0");

test.each([
  { name: "one with its checksum", text: `orders_${random}${checksum}`, want: false },
  { name: "one with another digit", text: `orders_1${random.slice(1)}${checksum}`, want: true },
  { name: "one with another checksum", text: `orders_${random}0000000`, want: true },
  // Whoever issued these, a hash of them may be in the file.
  { name: "one that is cut short", text: `orders_${random}`, want: false },
  { name: "one of another prefix", text: `offers_${random}0000000`, want: false },
  { name: "one of 43 characters of base64url", text: "kgtvBLzoSt89sauqAGZ0lJH_ktBVNLejLri9BGLHG7w", want: false },
])("$name is mistyped: $want", ({ text, want }) => {
  expect(isMistyped(text, prefix)).toBe(want);
});
