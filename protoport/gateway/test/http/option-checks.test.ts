import { expect, test } from "vitest";
import { NamePatterns } from "../../src/http/option-checks.ts";

const patterns = new NamePatterns(Object.entries({ "*": "all", "a.*": "short", "a.b": "exact", "a.b*": "long" }));

test.each([
  { name: "a.b", want: "exact" },
  { name: "a.b.c", want: "long" },
  { name: "a.c", want: "short" },
  { name: "a", want: "all" },
])("$name has the value of its most specific pattern", ({ name, want }) => expect(patterns.get(name)).toBe(want));

test("a name that no pattern matches has no value", () =>
  expect(new NamePatterns([["a.*", "short"]]).get("a")).toBeUndefined());
