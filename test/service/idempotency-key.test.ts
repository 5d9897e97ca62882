import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { readIdempotencyKey } from "../../src/service/idempotency-key.ts";

test.each([
  { field: '"8e03978e-40d5-43e8-bc93-6894a57f9324"', key: "8e03978e-40d5-43e8-bc93-6894a57f9324" },
  { field: '" "', key: " " },
  { field: ' "around it"  ', key: "around it" },
  { field: String.raw`"a \"quote\" and a \\"`, key: String.raw`a "quote" and a ` + "\\" },
  { field: `"${"k".repeat(128)}"`, key: "k".repeat(128) },
  { field: `"${String.raw`\"`.repeat(128)}"`, key: '"'.repeat(128) },
  { field: '"!#[]~"', key: "!#[]~" },
])('readIdempotencyKey reads the field $field as "$key"', ({ field, key }) => {
  expect(readIdempotencyKey(field)).toBe(key);
});

// RFC 9651 §4.2.5.
test.each(
  // oxfmt-ignore
  [
    "", '""', "key", "'key'", '"key', 'key"', '"a", "b"', '"a""b"', '"a";b=1', '("a")', ":a2V5:", "1", "?1",
    String.raw`"a\b"`, String.raw`"a\"`, '"a\tb"', '"a\u007f"', '"grün"', '"a\u0000b"', '"a\n"', `"${"k".repeat(129)}"`,
    `"${String.raw`\\`.repeat(129)}"`, `"${" ".repeat(100_000)}`, `${" ".repeat(100_000)}x`,
  ],
)("the field value %j is refused by readIdempotencyKey", (field) => {
  expect(() => readIdempotencyKey(field)).toThrow(
    expect.objectContaining({
      code: Code.InvalidArgument,
      rawMessage: "the Idempotency-Key header must be a string of 1 to 128 characters in double quotes",
    }),
  );
});
