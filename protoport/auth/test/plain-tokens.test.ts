import { describe, expect, test } from "vitest";

import { parsePlainTokens } from "../src/plain-tokens.ts";
import { digestOf } from "../src/token-verifier.ts";

const first = "abcdefghijklmnop";
const second = "0123456789-._~+/==";

const invalidCharacter =
  'contains a character that a bearer token cannot have (RFC 6750 §2.1: A-Z a-z 0-9 - . _ ~ + / and "=" at the end)';

describe("parsePlainTokens", () => {
  test.each([
    { name: "a string", given: `${first}, ${second}` },
    { name: "an array", given: [first, ` ${second} `] },
  ])("names the tokens in $name token-1 and token-2", ({ given }) => {
    expect(parsePlainTokens(given)).toEqual({
      kind: "value",
      value: [
        { digest: digestOf(first), name: "token-1", scopes: "all", expiresAtMs: undefined },
        { digest: digestOf(second), name: "token-2", scopes: "all", expiresAtMs: undefined },
      ],
    });
  });

  test.each([16, 8192])("accepts a token with %i characters", (length) => {
    expect(parsePlainTokens("a".repeat(length))).toMatchObject({ kind: "value", value: [{ name: "token-1" }] });
  });

  test.each([
    { name: "an empty string", given: "", want: ["token 1 is empty"] },
    { name: "a trailing comma", given: `${first},`, want: ["token 2 is empty"] },
    { name: "a token with 15 characters", given: "abcdefghijklmno", want: ["token 1 is shorter than 16 characters"] },
    { name: "a token with 8193 characters", given: "a".repeat(8193), want: ["token 1 is longer than 8192 characters"] },
    { name: "a duplicate token", given: `${first},${first}`, want: ["token 2 is a duplicate"] },
    {
      name: "each of two invalid tokens",
      given: `a,${first},b`,
      want: [1, 3].map((n) => `token ${n} is shorter than 16 characters`),
    },
    { name: "a space inside a token", given: "abcdefgh ijklmnop", want: [`token 1 ${invalidCharacter}`] },
    {
      name: "a token with a comma in an array",
      given: [second, `${first},${first}`],
      want: [`token 2 ${invalidCharacter}`],
    },
    { name: "a duplicate token in an array", given: [first, second, first], want: ["token 3 is a duplicate"] },
    { name: "an empty token in an array", given: [first, ""], want: ["token 2 is empty"] },
  ])("reports $name as a problem", ({ given, want }) => {
    expect(parsePlainTokens(given)).toEqual({ kind: "problems", problems: want });
  });
});
