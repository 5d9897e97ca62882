import type { JsonValue } from "@bufbuild/protobuf";

/** A field's rules as JSON, by paths such as `string.minLen`. A list is one value. */
export type RuleValues = ReadonlyMap<string, JsonValue>;

/** Returns the rules in a `buf.validate` message, by their paths. */
export function flattenRules(rules: JsonValue, prefix = ""): RuleValues {
  if (typeof rules !== "object" || rules === null || Array.isArray(rules)) return new Map([[prefix, rules]]);
  const below = (name: string): string => (prefix === "" ? name : `${prefix}.${name}`);
  const { celExpression = [], ...others } = rules;
  // Merged, because `cel` and `cel_expression` have the same meaning.
  const expressions = [...jsonListOf(others["cel"]), ...jsonListOf(celExpression)];
  const merged = expressions.length === 0 ? others : { ...others, cel: expressions };
  return new Map(Object.entries(merged).flatMap(([name, value]) => [...flattenRules(value, below(name))]));
}

/** Returns whether a changed rule accepts all values that it accepted before. */
type IsWider = (old: JsonValue | undefined, value: JsonValue | undefined) => boolean;

const ifRemoved: IsWider = (_old, value) => value === undefined || value === false;
const ifLower: IsWider = (old, value) =>
  value === undefined || (old !== undefined && comparableOf(value) <= comparableOf(old));
const ifHigher: IsWider = (old, value) =>
  value === undefined || (old !== undefined && comparableOf(value) >= comparableOf(old));
const ifMore: IsWider = (old, value) => value === undefined || (old !== undefined && isSubset(old, value));
const ifFewer: IsWider = (old, value) => value === undefined || (old !== undefined && isSubset(value, old));

/** The rules that can be relaxed without being removed. */
const widerIf: Readonly<Record<string, IsWider>> = {
  minLen: ifLower,
  minBytes: ifLower,
  minItems: ifLower,
  minPairs: ifLower,
  maxLen: ifHigher,
  maxBytes: ifHigher,
  maxItems: ifHigher,
  maxPairs: ifHigher,
  within: ifHigher,
  in: ifMore,
  notIn: ifFewer,
  cel: ifFewer,
  ignore: (old, value) => ignored.indexOf(value) >= ignored.indexOf(old),
  // The rule `example` is documentation, and refuses no value.
  example: () => true,
};

/** The `ignore` values after IGNORE_UNSPECIFIED. Each value exempts more field values than the previous value. */
const ignored: readonly (JsonValue | undefined)[] = ["IGNORE_IF_ZERO_VALUE", "IGNORE_ALWAYS"];

/** Returns the paths to rules that accept fewer values than before. */
export function narrowedRules(old: RuleValues, rules: RuleValues): readonly string[] {
  if (rules.get("ignore") === "IGNORE_ALWAYS") return [];
  return [...new Set([...old.keys(), ...rules.keys()])].filter((path) => {
    const [before, now] = [old.get(path), rules.get(path)];
    if (JSON.stringify(before) === JSON.stringify(now)) return false;
    const [, prefix = "", name = ""] = /^(.*?)([^.]*)$/.exec(path) ?? [];
    // Header names and values are checked strictly by default.
    if (name === "strict") return before === false && rules.has(`${prefix}wellKnownRegex`);
    if (isBound(name)) return !includesRange(rangeAt(rules, prefix), rangeAt(old, prefix));
    return !(widerIf[name] ?? ifRemoved)(before, now);
  });
}

function rangeAt(rules: RuleValues, prefix: string): RangeRules {
  const valueAt = (name: string): ComparableValue | undefined => {
    const value = rules.get(`${prefix}${name}`);
    return value === undefined ? undefined : comparableOf(value);
  };
  return { gt: valueAt("gt"), gte: valueAt("gte"), lt: valueAt("lt"), lte: valueAt("lte") };
}

function isSubset(some: JsonValue, all: JsonValue): boolean {
  const known = new Set(textsIn(all));
  return textsIn(some).every((item) => known.has(item));
}

function jsonListOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

// Compares only the expression of a CEL rule, because its id and message do not affect what it accepts.
function textsIn(value: JsonValue): readonly string[] {
  return (Array.isArray(value) ? value : [value]).map((item) =>
    JSON.stringify(item instanceof Object && "expression" in item ? item["expression"] : item),
  );
}

/** A number, or a duration or timestamp in nanoseconds. JavaScript compares a bigint exactly with a number. */
type ComparableValue = bigint | number;

/** A value's limits. A value has at most one lower limit, `gt` or `gte`, and one upper limit, `lt` or `lte`. */
type RangeRules = Readonly<Record<"gt" | "gte" | "lt" | "lte", ComparableValue | undefined>>;

/** Returns whether a rule is one of {@link RangeRules}. */
function isBound(name: string): boolean {
  return ["gt", "gte", "lt", "lte"].includes(name);
}

/** Returns whether `rules` accepts all values that `others` accepts. */
function includesRange(rules: RangeRules, others: RangeRules): boolean {
  const intervals = intervalsOf(rules);
  return intervalsOf(others).every(([start, end]) =>
    intervals.some(([first, last]) => compare(first, start) <= 0 && compare(last, end) >= 0),
  );
}

/**
 * Returns a rule's JSON value as a comparable value. In JSON, 64-bit numbers, durations such as "3.5s", timestamps and
 * NaN are strings.
 */
function comparableOf(value: JsonValue): ComparableValue {
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

type PositionInterval = readonly [first: Position, last: Position];

/** Returns the accepted intervals: two if the upper limit is below the lower limit, as `buf.validate` allows. */
function intervalsOf({ gt, gte, lt, lte }: RangeRules): readonly PositionInterval[] {
  const [start, end]: PositionInterval = [
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
