import * as fc from "fast-check";
import { expect, test } from "vitest";
import { formatChallenge } from "../src/credential-refusal.ts";

test.each(
  // oxfmt-ignore
  [
    { name: "writes a realm without other parameters", given: { realm: "orders" }, want: 'Bearer realm="orders"' },
    { name: "writes every parameter in the order of RFC 6750",
      given: { realm: "r", error: "insufficient_scope", errorDescription: "too narrow", scope: "orders:delete",
        resourceMetadata: "https://orders.example/.well-known/oauth-protected-resource" } as const,
      want: 'Bearer realm="r", error="insufficient_scope", error_description="too narrow", scope="orders:delete", ' +
        'resource_metadata="https://orders.example/.well-known/oauth-protected-resource"' },
    { name: "escapes quotes and backslashes (RFC 9110 §5.6.4)", given: { realm: String.raw`the "big" \ store` },
      want: String.raw`Bearer realm="the \"big\" \\ store"` },
    { name: "writes an empty realm", given: { realm: "" }, want: 'Bearer realm=""' },
  ],
)("formatChallenge $name", ({ given, want }) => expect(formatChallenge(given)).toBe(want));

test("formatChallenge quotes every printable ASCII value so that it can be parsed back", () => {
  const printable = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });
  fc.assert(
    fc.property(printable, (realm) => {
      const quoted = /^Bearer realm="((?:[^"\\]|\\.)*)"$/.exec(formatChallenge({ realm }))?.[1];
      expect(quoted?.replaceAll(/\\(.)/g, "$1")).toBe(realm);
    }),
  );
});

test.each([
  { name: "a line break", given: "a\r\nSet-Cookie: b" },
  { name: "a tab", given: "a\tb" },
  { name: "a letter outside ASCII", given: "Gärtnerei" },
  { name: "DEL", given: "a\u007f" },
])("formatChallenge rejects $name in the realm with a RangeError", ({ given }) => {
  expect(() => formatChallenge({ realm: given })).toThrow(RangeError);
});
