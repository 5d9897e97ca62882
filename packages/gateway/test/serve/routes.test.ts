import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PathIndex } from "../../src/serve/routes.ts";

describe("an index of texts", () => {
  test("finds what a Map finds, whatever is in it and looked for", () => {
    // Few letters and lengths, so that texts agree in what is looked at first.
    const text = fc.oneof(fc.string({ unit: fc.constantFrom("a", "b", "é", "😀"), maxLength: 4 }), fc.string());
    fc.assert(
      fc.property(fc.array(fc.tuple(text, fc.nat())), fc.array(text), (entries, others) => {
        const map = new Map(entries);
        const index = new PathIndex(entries);
        for (const looked of [...map.keys(), ...others]) expect(index.get(looked)).toBe(map.get(looked));
      }),
    );
  });

  test("tells texts apart whose lengths agree in their last 14 bits", () => {
    const index = new PathIndex([["a".repeat(16), "short"]]);
    expect(index.get("a".repeat(16 + 2 ** 14))).toBeUndefined();
  });
});
