import { create, type DescMessage } from "@bufbuild/protobuf";
import { EmptySchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { expect, test, vi } from "vitest";
import { openTimeLimit, prepareLimited } from "../../src/validation/limited-rules.ts";
import { throws } from "../../../testing/src/callback-forms.ts";

const typesWithRules = new Set<DescMessage>();
const rules = { owners: 1, patternCharacters: 0, typesWithRules, expressions: new Map<string, string>() };

test("a check that stalls without using the CPU is repeated", async () => {
  const limit = openTimeLimit();
  let checks = 0;
  const checkOf = prepareLimited(rules, limit, () => () => () => {
    checks++;
    // As on a machine that runs other processes.
    if (checks === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
  });
  checkOf(EmptySchema)?.(create(EmptySchema), Object.create(null));
  expect(checks).toBe(2);
});

test("a check that throws does not affect later checks", () => {
  const run = vi.fn<() => void>().mockImplementationOnce(throws(new Error("a violation")));
  const checkOf = prepareLimited(rules, openTimeLimit(), () => () => run);
  const check = (): void => checkOf(EmptySchema)?.(create(EmptySchema), Object.create(null));
  expect(check).toThrow("a violation");
  expect(check).not.toThrow();
  expect(run).toHaveLastReturnedWith(undefined);
});

/** Uses the processor for some milliseconds. */
function work(ms: number): void {
  const before = process.threadCpuUsage();
  for (;;) {
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= ms * 1000) return;
  }
}

test.each([
  { name: "that uses up its CPU time", workMs: 160, attempts: 1 },
  { name: "that stalls without using the CPU", workMs: 0, attempts: 4 },
])("a check $name is refused at attempt $attempts of 4", ({ workMs, attempts }) => {
  let checks = 0;
  // Only the rules are prepared in time.
  const limit = (run: () => void): boolean => (run(), checks === 0);
  const checkOf = prepareLimited(rules, limit, () => () => () => {
    checks++;
    work(workMs);
  });
  const check = (): void => checkOf(EmptySchema)?.(create(EmptySchema), Object.create(null));
  expect(check).toThrow("it takes longer than 300 ms");
  expect(checks).toBe(attempts);
  expect(check).toThrow("it takes longer than 300 ms");
  expect(checks).toBe(2 * attempts);
});

test.each([
  ["2,000 fields", undefined, { owners: 2000 }],
  ["2,001 fields", "more than 2000 fields and messages have rules", { owners: 2001 }],
  ["10,000 characters", undefined, { patternCharacters: 10_000 }],
  ["10,001 characters", "their patterns have more than 10000 characters", { patternCharacters: 10_001 }],
  ["CEL", "a.B.c has a rule in CEL", { expressions: new Map([["1", "a.B.c"]]) }],
])("rules with %s are refused with %s before they are compiled", (_name, problem, changes) => {
  const prepare = vi.fn<() => () => undefined>(() => () => undefined);
  const start = (): unknown => prepareLimited({ ...rules, ...changes }, openTimeLimit(), prepare);
  if (problem === undefined) expect(start()).toBeTypeOf("function");
  else expect(start).toThrow(`the validation rules are not accepted from a server: ${problem}`);
  expect(prepare).toHaveBeenCalledTimes(problem === undefined ? 1 : 0);
});

test("rules may take 5 s to compile, and 300 ms to check", () => {
  const limits: number[] = [];
  const limit = (run: () => void, timeoutMs: number): boolean => {
    limits.push(timeoutMs);
    run();
    return true;
  };
  const checkOf = prepareLimited(rules, limit, () => (type) => (type === EmptySchema ? () => {} : undefined));
  checkOf(EmptySchema)?.(create(EmptySchema), Object.create(null));
  expect([limits, checkOf(TimestampSchema)]).toEqual([[5000, 300], undefined]);
});

test("rules that take too long to compile are refused", () => {
  const [never, prepare] = [() => false, () => () => undefined];
  const start = (): unknown => prepareLimited(rules, never, prepare);
  expect(start).toThrow("compiling them takes longer than 5000 ms");
});
