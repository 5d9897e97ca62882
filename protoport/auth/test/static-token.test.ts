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
    { name: "a token that never expires", given: digestOf("ci-token"), want: { subject: "ci", scopes: "all" } },
    {
      name: "a token that expires later",
      given: digestOf("later"),
      want: { subject: "later", scopes: new Set(["a"]) },
    },
    {
      name: "the first of two digests with the same prefix",
      given: sharedPrefix + "1".repeat(48),
      want: { subject: "one", scopes: "all" },
    },
    {
      name: "the second of two digests with the same prefix",
      given: sharedPrefix + "2".repeat(48),
      want: { subject: "two", scopes: "all" },
    },
  ])("accepts $name and returns its principal", ({ given, want }) => {
    expect(verifier.verify({ digest: given, text: "" })).toEqual({ kind: "principal", issuer: undefined, ...want });
  });

  test.each([
    { name: "returns unknown for another token", given: digestOf("ci-toke"), want: "unknown" },
    {
      name: "returns unknown for a digest with the prefix of another",
      given: sharedPrefix + "3".repeat(48),
      want: "unknown",
    },
    { name: "returns expired for an expired token", given: digestOf("earlier"), want: "expired" },
  ])("$name", ({ given, want }) => {
    expect(verifier.verify({ digest: given, text: "" })).toMatchObject({ kind: want });
  });
});
