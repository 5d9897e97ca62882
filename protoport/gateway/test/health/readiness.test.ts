import { expect, test } from "vitest";
import { Readiness } from "../../src/health/readiness.ts";

const healthy = {};
const unhealthy = { problem: "the provider is away" };

test.each([
  ["obstacles() returns an empty array while all parts are healthy", { store: healthy }, false, []],
  ["obstacles() returns the name of an unhealthy part", { store: healthy, keys: unhealthy }, false, ["keys"]],
  ['obstacles() returns "draining" after startDraining()', { store: healthy }, true, ["draining"]],
  [
    'obstacles() returns "draining" before the name of an unhealthy part',
    { keys: unhealthy },
    true,
    ["draining", "keys"],
  ],
])("%s", (_name, parts, draining, want) => {
  const readiness = new Readiness(parts);
  if (draining) readiness.startDraining();
  expect(readiness.obstacles()).toEqual(want);
});

test("degraded() returns an unhealthy optional part, obstacles() does not", () => {
  const optional = { ...unhealthy, isOptional: true };
  const readiness = new Readiness({ keys: unhealthy, mirror: optional, other: { isOptional: true } });
  expect([readiness.obstacles(), [...readiness.problems().keys()]]).toEqual([["keys"], ["keys"]]);
  expect(readiness.degraded()).toEqual(["mirror"]);
});

test("readiness recovers when a part recovers", () => {
  const store: { problem: string | undefined } = { problem: "disk full" };
  const readiness = new Readiness({ store });
  expect(readiness.obstacles()).toEqual(["store"]);
  store.problem = undefined;
  expect(readiness.obstacles()).toEqual([]);
});

test.each([
  { parts: [], got: "undefined" },
  { parts: [null], got: "null" },
  { parts: [["store"]], got: "an array" },
])("Readiness refuses $got instead of an object with parts", ({ parts, got }) => {
  expect(() => Reflect.construct(Readiness, parts)).toThrow(
    expect.objectContaining({ code: "ERR_OPTIONS", message: `Readiness requires an object of parts, got ${got}` }),
  );
});
