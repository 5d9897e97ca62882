import { inspect } from "node:util";
import { expect, test } from "vitest";
import { LazyHeaders } from "../../src/protocols/lazy-headers.ts";

test("util.inspect() prints a LazyHeaders like a Headers object", () => {
  const shown = inspect(new LazyHeaders([":path", "/", "content-type", "text/plain", "x-a", "1"]));
  expect(shown).toBe(
    inspect(
      new Headers([
        ["content-type", "text/plain"],
        ["x-a", "1"],
      ]),
    ),
  );
  expect(shown).toContain("text/plain");
});
