import * as fc from "fast-check";
import { expect, type TestContext, test, vi } from "vitest";
import { waitLimitMs } from "../../../../protoport/testing/src/deadline.ts";
import { isNightly } from "../../../../protoport/testing/src/test-seed.ts";

// Tests the setup file that limits how long properties run, and fails those that ran with too few inputs.

/** Returns the inputs that a test's properties have counted, and removes them from the summary. */
function takeInputs({ task }: TestContext): unknown {
  const { inputs } = task.meta;
  task.meta.inputs = [];
  return inputs;
}

test("a passing property records how many inputs it tried", (context) => {
  fc.assert(fc.property(fc.integer(), Number.isInteger), { numRuns: 20 });
  expect(takeInputs(context)).toEqual([{ tried: 20, wanted: 20 }]);
});

test("a failing property reports its smallest input and the cause", () => {
  const cause = new Error("too large");
  const property = fc.property(fc.nat(100), (value) => {
    if (value >= 10) throw cause;
  });
  const failing = (): void => fc.assert(property, { numRuns: 1000 });
  expect(failing).toThrow(/Counterexample: \[10\]/);
  expect(failing).toThrow(expect.objectContaining({ cause }));
});

test("a property that hangs fails at its own time limit", async () => {
  expect(fc.readConfigureGlobal().timeout).toBeLessThan(waitLimitMs);
  const property = fc.asyncProperty(fc.constant(7), () => new Promise<void>(() => {}));
  await expect(fc.assert(property, { timeout: 5 })).rejects.toThrow(/Counterexample: \[7\]/);
});

/**
 * The lowest sufficient number when 2,000 inputs are expected. Nightly runs have more inputs, and need a smaller share.
 */
const sufficient = isNightly ? 10 : 200;

test.for([
  { inputs: sufficient - 1, name: "fails if it tried too few inputs" },
  { inputs: sufficient, name: "passes if it tried enough inputs" },
])("a property stops at its time limit, and $name", ({ inputs }, context) => {
  const start = performance.now();
  let tried = 0;
  using clock = vi.spyOn(performance, "now");
  clock.mockImplementation(() => (tried < inputs ? start : start + waitLimitMs));
  const property = fc.property(fc.integer(), () => void (tried += 1));
  const assertion = (): void => fc.assert(property, { numRuns: 2000 });
  if (inputs < sufficient) expect(assertion).toThrow(`only ${inputs} of 2000 inputs were tried`);
  else expect(assertion).not.toThrow();
  expect(tried).toBe(inputs);
  expect(takeInputs(context)).toEqual([{ tried: inputs, wanted: 2000 }]);
});
