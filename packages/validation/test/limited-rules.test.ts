import { create, type DescMessage } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { expect, test, vi } from "vitest";
import { openTimeLimit, prepareLimited } from "../src/limited-rules.ts";

const rules = {
  owners: 1,
  patternCharacters: 0,
  typesWithRules: new Set<DescMessage>(),
  expressions: new Map<string, string>(),
};

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
  const run = vi.fn<() => void>().mockImplementationOnce(() => {
    throw new Error("a violation");
  });
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
  const limit = (run: () => void): boolean => {
    run();
    return checks === 0;
  };
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
