import { describe, expect, test } from "vitest";
import { createStaticTokenVerifier } from "../src/static-token.ts";
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
