import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { createTokenText, isMistyped } from "../src/token-text.ts";
import { readPage } from "../../../test/support/docs/page-blocks.ts";

const [, pattern = ""] = /`(plantstore_\[.*?)`/.exec(readPage("docs/how-to/authentication.md")) ?? [];

const prefix = "plantstore_";

test("every token has the form that docs/how-to/authentication.md gives to scanners, and its checksum", () => {
  for (let made = 0; made < 100; made++) {
    const text = createTokenText(prefix);
    expect(text).toMatch(new RegExp(`^${pattern}$`));
    expect(Number.parseInt(text.slice(-7), 36)).toBe(crc32(text.slice(0, -7)));
    expect(isMistyped(text, prefix)).toBe(false);
  }
});

const random = "0".repeat(50);
const checksum = crc32(`plantstore_${random}`).toString(36).padStart(7, "0");

test.each([
  { name: "one with its checksum", text: `plantstore_${random}${checksum}`, want: false },
  { name: "one with another digit", text: `plantstore_1${random.slice(1)}${checksum}`, want: true },
  { name: "one with another checksum", text: `plantstore_${random}0000000`, want: true },
  // Whoever issued these, a hash of them may be in the file.
  { name: "one that is cut short", text: `plantstore_${random}`, want: false },
  { name: "one of another prefix", text: `plantshop_${random}0000000`, want: false },
  { name: "one of 43 characters of base64url", text: "kgtvBLzoSt89sauqAGZ0lJH_ktBVNLejLri9BGLHG7w", want: false },
])("$name is mistyped: $want", ({ text, want }) => {
  expect(isMistyped(text, prefix)).toBe(want);
});
