import { describe, expect, test } from "vitest";

import { BoundedCache } from "../../../src/operators/auth/bounded-cache.ts";

function filled(limit: number, keys: readonly string[]): BoundedCache<string> {
  const cache = new BoundedCache<string>(limit);
  for (const key of keys) cache.set(key, `value of ${key}`);
  return cache;
}

describe("BoundedCache", () => {
  test("keeps the last value of a key", () => {
    const cache = filled(2, ["a"]);
    cache.set("a", "another");
    expect(cache.get("a")).toBe("another");
  });

  test.each([
    { name: "keeps the values of the young generation", keys: ["90", "95", "99"], want: ["90", "95", "99"] },
    { name: "keeps a value of the old generation", keys: ["80"], want: ["80"] },
    { name: "forgets what is older than two generations", keys: ["0", "70", "79"], want: [] },
  ])("$name", ({ keys, want }) => {
    const cache = filled(
      10,
      Array.from({ length: 100 }, (_, n) => String(n)),
    );
    expect(keys.filter((key) => cache.get(key) !== undefined)).toEqual(want);
  });

  test("keeps what is used, however much comes after it", () => {
    const cache = filled(10, ["used"]);
    for (let n = 0; n < 100; n += 1) {
      cache.set(String(n), "");
      cache.get("used");
    }
    expect(cache.get("used")).toBe("value of used");
  });

  test("forgets nothing when a value is set again", () => {
    expect(filled(1, ["a", "b", "b"]).get("a")).toBe("value of a");
  });

  test.each([
    { name: "of the young generation", keys: ["a"] },
    { name: "of the old generation", keys: ["a", "b", "c"] },
  ])("forgets a value $name at once when told to", ({ keys }) => {
    const cache = filled(2, keys);
    expect(cache.get("a")).toBe("value of a");
    cache.delete("a");
    expect(cache.get("a")).toBeUndefined();
  });

  test("does not bring back an old value of a key that was set again", () => {
    const cache = filled(2, ["a", "b", "c"]);
    cache.set("a", "new");
    cache.delete("a");
    expect(cache.get("a")).toBeUndefined();
  });
});
