import { afterEach, beforeEach, expect, test } from "vitest";
import { startDeadline } from "../../../src/http/exchange/timers.ts";
import { within } from "@protoport/testing/process";

// Node warns about a timer that overflows.
const warnings: Error[] = [];
const warn = (warning: Error): void => void warnings.push(warning);
beforeEach(() => void process.on("warning", warn));
afterEach(() => {
  process.off("warning", warn);
  warnings.length = 0;
});

test.each([
  { name: "one hour", timeoutMs: 3_600_000 },
  { name: "the longest timer delay", timeoutMs: 2 ** 31 - 1 },
  { name: "one millisecond above the longest timer delay", timeoutMs: 2 ** 31 },
  { name: "the longest gRPC timeout (99999999H)", timeoutMs: 99_999_999 * 3_600_000 },
])("startDeadline with $name does not fire within 2 ms", async ({ timeoutMs }) => {
  let over = false;
  const stop = startDeadline(timeoutMs, () => (over = true));
  // A timer that overflows fires after 1 ms.
  await within(new Promise<void>((resolve) => startDeadline(2, resolve)), "the deadline of 2 ms");
  stop();
  expect([over, warnings]).toEqual([false, []]);
});

test("a stopped deadline does not fire", async () => {
  let over = false;
  const stop = startDeadline(1, () => (over = true));
  stop();
  stop();
  await within(new Promise<void>((resolve) => startDeadline(2, resolve)), "the deadline of 2 ms");
  expect(over).toBe(false);
});
