import { expect, test } from "vitest";
import { Readiness } from "../../src/health/readiness.ts";

const healthy = {};
const unhealthy = { problem: "the provider is away" };

test.each([
  {
    name: "obstacles() returns an empty array while all parts are healthy",
    parts: { store: healthy },
    draining: false,
    want: [],
  },
  {
    name: "obstacles() returns the name of an unhealthy part",
    parts: { store: healthy, keys: unhealthy },
    draining: false,
    want: ["keys"],
  },
  {
    name: 'obstacles() returns "draining" after startDraining()',
    parts: { store: healthy },
    draining: true,
    want: ["draining"],
  },
  {
    name: 'obstacles() returns "draining" before the name of an unhealthy part',
    parts: { keys: unhealthy },
    draining: true,
    want: ["draining", "keys"],
  },
])("$name", ({ parts, draining, want }) => {
  const readiness = new Readiness(parts);
  if (draining) readiness.startDraining();
  expect(readiness.obstacles()).toEqual(want);
});

test("degraded() returns an unhealthy optional part, obstacles() does not", () => {
  const optional = { ...unhealthy, isOptional: true };
  const readiness = new Readiness({ keys: unhealthy, mirror: optional, other: { isOptional: true } });
  expect(readiness.obstacles()).toEqual(["keys"]);
  expect([...readiness.problems().keys()]).toEqual(["keys"]);
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
