import { expect, test } from "vitest";
import { parsePlainTokens } from "../src/plain-tokens.ts";
import { digestOf } from "../src/token-verifier.ts";

const first = "abcdefghijklmnop";
const second = "0123456789-._~+/==";

const invalidCharacter =
  'contains a character that a bearer token cannot have (RFC 6750 §2.1: A-Z a-z 0-9 - . _ ~ + / and "=" at the end)';

test.each([
  { name: "a string", given: `${first}, ${second}` },
  { name: "an array", given: [first, ` ${second} `] },
])("parsePlainTokens names the tokens in $name token-1 and token-2", ({ given }) => {
  expect(parsePlainTokens(given)).toEqual({
    kind: "value",
    value: [
      { digest: digestOf(first), name: "token-1", scopes: "all", expiresAtMs: undefined },
      { digest: digestOf(second), name: "token-2", scopes: "all", expiresAtMs: undefined },
    ],
  });
});

test.each([16, 8192])("parsePlainTokens accepts a token with %i characters", (length) => {
  expect(parsePlainTokens("a".repeat(length))).toMatchObject({ kind: "value", value: [{ name: "token-1" }] });
});

test.each([
  ["an empty string", "", ["token 1 is empty"]],
  ["a trailing comma", `${first},`, ["token 2 is empty"]],
  ["a token with 15 characters", "abcdefghijklmno", ["token 1 is shorter than 16 characters"]],
  ["a token with 8193 characters", "a".repeat(8193), ["token 1 is longer than 8192 characters"]],
  ["a duplicate token", `${first},${first}`, ["token 2 is a duplicate"]],
  ["each of two invalid tokens", `a,${first},b`, [1, 3].map((n) => `token ${n} is shorter than 16 characters`)],
  ["a space inside a token", "abcdefgh ijklmnop", [`token 1 ${invalidCharacter}`]],
  ["a token with a comma in an array", [second, `${first},${first}`], [`token 2 ${invalidCharacter}`]],
  ["a duplicate token in an array", [first, second, first], ["token 3 is a duplicate"]],
  ["an empty token in an array", [first, ""], ["token 2 is empty"]],
])("parsePlainTokens reports %s as a problem", (_name, given, want) => {
  expect(parsePlainTokens(given)).toEqual({ kind: "problems", problems: want });
});
