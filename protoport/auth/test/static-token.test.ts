import { crc32 } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createStaticTokenVerifier, createTokenText, isMistyped } from "../src/static-token.ts";
import { digestOf } from "../src/token-verifier.ts";

const hourMs = 3_600_000;
const sharedPrefix = "0".repeat(16);

describe("createStaticTokenVerifier", () => {
  const verifier = createStaticTokenVerifier(
    [
      { digest: digestOf("ci-token"), name: "ci", scopes: "all", expiresAtMs: undefined },
      { digest: digestOf("later"), name: "later", scopes: new Set(["a"]), expiresAtMs: Date.now() + hourMs },
      { digest: digestOf("earlier"), name: "earlier", scopes: "all", expiresAtMs: Date.now() - 1 },
      { digest: sharedPrefix + "1".repeat(48), name: "one", scopes: "all", expiresAtMs: undefined },
      { digest: sharedPrefix + "2".repeat(48), name: "two", scopes: "all", expiresAtMs: undefined },
    ],
    undefined,
  );

  test.each([
    ["a token that never expires", digestOf("ci-token"), { subject: "ci", scopes: "all" }],
    ["a token that expires later", digestOf("later"), { subject: "later", scopes: new Set(["a"]) }],
    ["the first of two digests with the same prefix", sharedPrefix + "1".repeat(48), { subject: "one", scopes: "all" }],
    ["the second digest with the same prefix", sharedPrefix + "2".repeat(48), { subject: "two", scopes: "all" }],
  ])("accepts %s and returns its principal", (_name, given, want) => {
    expect(verifier.verify({ digest: given, text: "" })).toEqual({ kind: "principal", issuer: undefined, ...want });
  });

  test.each([
    ["returns unknown for another token", digestOf("ci-toke"), "unknown"],
    ["returns unknown for a digest with the prefix of another", sharedPrefix + "3".repeat(48), "unknown"],
    ["returns expired for an expired token", digestOf("earlier"), "expired"],
  ])("%s", (_name, given, want) => expect(verifier.verify({ digest: given, text: "" })).toMatchObject({ kind: want }));
});

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
