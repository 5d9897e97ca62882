import type { JsonValue } from "@bufbuild/protobuf";

/** A number, or a duration or timestamp in nanoseconds. JavaScript compares a bigint exactly with a number. */
export type ComparableValue = bigint | number;

/** A value's limits. A value has at most one lower limit, `gt` or `gte`, and one upper limit, `lt` or `lte`. */
export type RangeRules = Readonly<Record<"gt" | "gte" | "lt" | "lte", ComparableValue | undefined>>;

/** Returns whether a rule is one of {@link RangeRules}. */
export function isBound(name: string): boolean {
  return ["gt", "gte", "lt", "lte"].includes(name);
}

/** Returns whether `rules` accepts all values that `others` accepts. */
export function includesRange(rules: RangeRules, others: RangeRules): boolean {
  const intervals = intervalsOf(rules);
  return intervalsOf(others).every(([start, end]) =>
    intervals.some(([first, last]) => compare(first, start) <= 0 && compare(last, end) >= 0),
  );
}

/**
 * Returns a rule's JSON value as a comparable value. In JSON, 64-bit numbers, durations such as "3.5s", timestamps and
 * NaN are strings.
 */
export function comparableOf(value: JsonValue): ComparableValue {
  if (typeof value !== "string") return Number(value);
  if (/^-?\d+$/.test(value)) return BigInt(value);
  const [, seconds, secondFraction = ""] = /^(-?\d+)(?:\.(\d+))?s$/.exec(value) ?? [];
  if (seconds !== undefined) return BigInt(seconds + secondFraction.padEnd(9, "0"));
  const [, time, fraction = ""] = /^(\d{4}-[^.]+?)(?:\.(\d+))?Z$/.exec(value) ?? [];
  if (time === undefined) return Number(value);
  return BigInt(Date.parse(`${time}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** An interval's end: at a value (0), just below the value (-1) or just above the value (1). */
type Position = readonly [value: ComparableValue, side: -1 | 0 | 1];

type Interval = readonly [first: Position, last: Position];

/** Returns the accepted intervals: two if the upper limit is below the lower limit, as `buf.validate` allows. */
function intervalsOf({ gt, gte, lt, lte }: RangeRules): readonly Interval[] {
  const [start, end]: Interval = [
    [-Infinity, -1],
    [Infinity, 1],
  ];
  const lower: Position = gt !== undefined ? [gt, 1] : gte !== undefined ? [gte, 0] : start;
  const upper: Position = lt !== undefined ? [lt, -1] : lte !== undefined ? [lte, 0] : end;
  if (upper[0] >= lower[0]) return [[lower, upper]];
  return [
    [start, upper],
    [lower, end],
  ];
}

function compare([one, side]: Position, [other, otherSide]: Position): number {
  if (one === other || !(one < other || one > other)) return side - otherSide;
  return one < other ? -1 : 1;
}
