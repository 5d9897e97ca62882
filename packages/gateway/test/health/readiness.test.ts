import { expect, test } from "vitest";
import { Readiness } from "../../src/health/readiness.ts";

const well = {};
const unwell = { problem: "the provider is away" };

test.each([
  {
    name: "nothing is in the way of a service whose parts are well",
    parts: { store: well },
    draining: false,
    want: [],
  },
  { name: "a part that is unwell is named", parts: { store: well, keys: unwell }, draining: false, want: ["keys"] },
  {
    name: "draining is in the way although all parts are well",
    parts: { store: well },
    draining: true,
    want: ["draining"],
  },
  {
    name: "draining is named beside what is unwell",
    parts: { keys: unwell },
    draining: true,
    want: ["draining", "keys"],
  },
])("$name", ({ parts, draining, want }) => {
  const readiness = new Readiness(parts);
  if (draining) readiness.startDraining();
  expect(readiness.obstacles()).toEqual(want);
});

test("an optional part that cannot serve is degraded, and no obstacle", () => {
  const optional = { ...unwell, isOptional: true };
  const readiness = new Readiness({ keys: unwell, mirror: optional, other: { isOptional: true } });
  expect(readiness.obstacles()).toEqual(["keys"]);
  expect([...readiness.problems().keys()]).toEqual(["keys"]);
  expect(readiness.degraded()).toEqual(["mirror"]);
});

test("a part that gets well again is ready again", () => {
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
])("Readiness requires an object of parts: $got", ({ parts, got }) => {
  expect(() => Reflect.construct(Readiness, parts)).toThrow(
    expect.objectContaining({ code: "ERR_OPTIONS", message: `Readiness requires an object of parts, got ${got}` }),
  );
});
