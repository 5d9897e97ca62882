import { expect, test } from "vitest";
import { Readiness } from "../../src/operations/readiness.ts";

const well = { name: "store", problem: (): undefined => undefined };
const unwell = { name: "keys", problem: (): string => "the provider is away" };

test.each([
  { name: "nothing is in the way of a service whose parts are well", checks: [well], draining: false, want: [] },
  { name: "a part that is unwell is named", checks: [well, unwell], draining: false, want: ["keys"] },
  { name: "draining is in the way although all parts are well", checks: [well], draining: true, want: ["draining"] },
  { name: "draining is named beside what is unwell", checks: [unwell], draining: true, want: ["draining", "keys"] },
])("$name", ({ checks, draining, want }) => {
  const readiness = new Readiness(checks);
  if (draining) readiness.startDraining();
  expect(readiness.obstacles()).toEqual(want);
});

test("a part that gets well again is ready again", () => {
  let problem: string | undefined = "disk full";
  const readiness = new Readiness([{ name: "store", problem: () => problem }]);
  expect(readiness.obstacles()).toEqual(["store"]);
  problem = undefined;
  expect(readiness.obstacles()).toEqual([]);
});
