import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { validityProblem } from "../../src/files/index.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const certificate = { validFromDate: new Date(1_000), validToDate: new Date(2_000) };

test.each([
  { name: "before", nowMs: 999, problem: "is not valid before 1970-01-01T00:00:01.000Z" },
  { name: "at the start of", nowMs: 1_000, problem: undefined },
  { name: "at the end of", nowMs: 2_000, problem: undefined },
  { name: "after", nowMs: 2_001, problem: "expired at 1970-01-01T00:00:02.000Z" },
])("validityProblem returns $problem $name the validity period", ({ nowMs, problem }) => {
  vi.setSystemTime(nowMs);
  expect(validityProblem(certificate)).toBe(problem);
});
