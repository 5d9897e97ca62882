import { EmptySchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { takeFault } from "../../src/serve/to-connect-error.ts";
import { FailedRules } from "../../src/validation/evaluation-error.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => vi.useRealTimers());

/** Returns whether a rule's failure is reported to `onFault`. */
function isReported(
  rules: FailedRules,
  text: string,
  type: typeof EmptySchema | typeof TimestampSchema = EmptySchema,
): boolean {
  return takeFault(rules.errorFor(type, new Error(text))) !== undefined;
}

test("a rule's evaluation error is reported once per minute", () => {
  const rules = new FailedRules();
  for (let minute = 0; minute < 3; minute++) {
    expect([isReported(rules, "a"), isReported(rules, "a")]).toEqual([true, false]);
    vi.advanceTimersByTime(59_999);
    expect(isReported(rules, "a")).toBe(false);
    vi.advanceTimersByTime(1);
  }
});

test("a rule's evaluation error is reported on one line", () => {
  const { rawMessage } = new FailedRules().errorFor(EmptySchema, new Error("a\nb"));
  expect(rawMessage).toBe("a validation rule cannot be evaluated: a b");
});

test("evaluation errors of two rules or two types are reported separately", () => {
  const rules = new FailedRules();
  const want = [true, true, true];
  expect([isReported(rules, "a"), isReported(rules, "b"), isReported(rules, "a", TimestampSchema)]).toEqual(want);
});

test("at most 64 evaluation errors are reported per minute", () => {
  const rules = new FailedRules();
  const reportedOf100 = (): number =>
    Array.from({ length: 100 }, (_, at) => isReported(rules, `failure ${at}`)).filter(Boolean).length;
  expect(reportedOf100()).toBe(64);
  vi.advanceTimersByTime(60_000);
  expect(reportedOf100()).toBe(64);
});
