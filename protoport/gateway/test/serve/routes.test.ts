import * as fc from "fast-check";
import { expect, test } from "vitest";
import { PathIndex } from "../../src/serve/routes.ts";

test("PathIndex finds the same values as a Map for any paths", () => {
  // Few letters and lengths, so that fingerprints collide.
  const text = fc.oneof(fc.string({ unit: fc.constantFrom("a", "b", "é", "😀"), maxLength: 4 }), fc.string());
  fc.assert(
    fc.property(fc.array(fc.tuple(text, fc.nat())), fc.array(text), (entries, others) => {
      const map = new Map(entries);
      const index = new PathIndex(entries);
      for (const looked of [...map.keys(), ...others]) expect(index.get(looked)).toBe(map.get(looked));
    }),
  );
});

test("PathIndex distinguishes strings whose lengths have the same last 14 bits", () =>
  expect(new PathIndex([["a".repeat(16), "short"]]).get("a".repeat(16 + 2 ** 14))).toBeUndefined());
