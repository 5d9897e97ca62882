import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { validityProblem } from "../../src/files/index.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const certificate = { validFromDate: new Date(1_000), validToDate: new Date(2_000) };

test.each([
  { name: "before its period", nowMs: 999, problem: "is not valid before 1970-01-01T00:00:01.000Z" },
  { name: "at the start of its period", nowMs: 1_000, problem: undefined },
  { name: "at the end of its period", nowMs: 2_000, problem: undefined },
  { name: "after its period", nowMs: 2_001, problem: "expired at 1970-01-01T00:00:02.000Z" },
])("a certificate's problem $name is $problem", ({ nowMs, problem }) => {
  vi.setSystemTime(nowMs);
  expect(validityProblem(certificate)).toBe(problem);
});
