import * as fc from "fast-check";
import { expect, type TestContext, test, vi } from "vitest";
import { waitLimitMs } from "../../packages/testing/src/deadline.ts";
import { isNightly } from "../../packages/testing/src/test-seed.ts";

// What is set up before each test file: how long a property may take, and when it fails.

/** Takes what the properties of a test have counted, so that the summary of the run leaves it out. */
function takeInputs({ task }: TestContext): unknown {
  const { inputs } = task.meta;
  task.meta.inputs = [];
  return inputs;
}

test("a property that holds for all of its inputs counts them", (context) => {
  fc.assert(fc.property(fc.integer(), Number.isInteger), { numRuns: 20 });
  expect(takeInputs(context)).toEqual([{ tried: 20, wanted: 20 }]);
});

test("a property that does not hold fails with its smallest input and the cause", () => {
  const cause = new Error("too large");
  const property = fc.property(fc.nat(100), (value) => {
    if (value >= 10) throw cause;
  });
  const failing = (): void => fc.assert(property, { numRuns: 1000 });
  expect(failing).toThrow(/Counterexample: \[10\]/);
  expect(failing).toThrow(expect.objectContaining({ cause }));
});

test("a property whose input hangs fails, in less time than any wait for an answer takes", async () => {
  expect(fc.readConfigureGlobal().timeout).toBeLessThan(waitLimitMs);
  const property = fc.asyncProperty(fc.constant(7), () => new Promise<void>(() => {}));
  await expect(fc.assert(property, { timeout: 5 })).rejects.toThrow(/Counterexample: \[7\]/);
});

/** The least inputs of 2,000 that are enough: fewer by night, when there are more to try. */
const enough = isNightly ? 10 : 200;

test.for([
  { inputs: enough - 1, name: "fails where it has tried too few inputs" },
  { inputs: enough, name: "passes where it has tried enough" },
])("a property whose time is over tries no further input, and $name", ({ inputs }, context) => {
  const start = performance.now();
  let tried = 0;
  using clock = vi.spyOn(performance, "now");
  clock.mockImplementation(() => (tried < inputs ? start : start + waitLimitMs));
  const property = fc.property(fc.integer(), () => void (tried += 1));
  const assertion = (): void => fc.assert(property, { numRuns: 2000 });
  if (inputs < enough) expect(assertion).toThrow(`only ${inputs} of 2000 inputs were tried`);
  else expect(assertion).not.toThrow();
  expect(tried).toBe(inputs);
  expect(takeInputs(context)).toEqual([{ tried: inputs, wanted: 2000 }]);
});
