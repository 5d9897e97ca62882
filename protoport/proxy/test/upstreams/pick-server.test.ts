import { expect, test } from "vitest";
import { pickServer } from "../../src/upstreams/upstream-server.ts";

/** Returns how often each of some servers with these calls in flight is picked in 2,000 attempts. */
function countPicks(calls: readonly number[]): readonly number[] {
  const servers = calls.map((count, at) => ({ calls: count, at }));
  const counts = calls.map(() => 0);
  for (let attempt = 0; attempt < 2_000; attempt++) {
    const at = pickServer(servers)?.at ?? -1;
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts;
}

test("pickServer picks the less loaded of two different servers", () => {
  const [none = 0, one = 0, two = 0] = countPicks([0, 1, 2]);
  expect([none + one, two]).toEqual([2_000, 0]);
  // The expected numbers are 1,333 and 667. The limits are 10 standard deviations away.
  expect(none).toBeGreaterThan(1_120);
  expect(one).toBeGreaterThan(450);
});

test("pickServer picks servers with the same load equally often", () => {
  for (const count of countPicks([3, 3, 3, 3])) expect(Math.abs(count - 500)).toBeLessThan(200);
});

test("pickServer picks the only server, or none", () => {
  expect(countPicks([7])).toEqual([2_000]);
  expect(pickServer([])).toBeUndefined();
});
