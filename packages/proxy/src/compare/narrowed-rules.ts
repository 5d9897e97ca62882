import type { JsonValue } from "@bufbuild/protobuf";

/** A field's rules as JSON, by paths such as `string.minLen`. Lists are values. */
export type RuleValues = ReadonlyMap<string, JsonValue>;

/** Returns the rules in a `buf.validate` message, by their paths. */
export function flattenRules(rules: JsonValue, prefix = ""): RuleValues {
  if (typeof rules !== "object" || rules === null || Array.isArray(rules)) return new Map([[prefix, rules]]);
  const below = (name: string): string => (prefix === "" ? name : `${prefix}.${name}`);
  return new Map(Object.entries(rules).flatMap(([name, value]) => [...flattenRules(value, below(name))]));
}

/** Whether a rule that changed accepts all values that it accepted before. */
type IsWider = (old: JsonValue | undefined, value: JsonValue | undefined) => boolean;

const ifRemoved: IsWider = (_old, value) => value === undefined || value === false;
const ifLower: IsWider = (old, value) => value === undefined || (old !== undefined && toNumber(value) <= toNumber(old));
const ifHigher: IsWider = (old, value) =>
  value === undefined || (old !== undefined && toNumber(value) >= toNumber(old));
const ifMore: IsWider = (old, value) => value === undefined || (old !== undefined && isSubset(old, value));
const ifFewer: IsWider = (old, value) => value === undefined || (old !== undefined && isSubset(value, old));

/** The rules that can become wider without being removed. */
const widerIf: Readonly<Record<string, IsWider>> = {
  minLen: ifLower,
  minBytes: ifLower,
  minItems: ifLower,
  minPairs: ifLower,
  gt: ifLower,
  gte: ifLower,
  maxLen: ifHigher,
  maxBytes: ifHigher,
  maxItems: ifHigher,
  maxPairs: ifHigher,
  lt: ifHigher,
  lte: ifHigher,
  within: ifHigher,
  in: ifMore,
  notIn: ifFewer,
  cel: ifFewer,
  celExpression: ifFewer,
  // Rules are ignored for fewer values.
  ignore: () => false,
  // A documentation value.
  example: () => true,
};

/** Returns the paths to the rules that accept fewer values than before. */
export function narrowedRules(old: RuleValues, rules: RuleValues): readonly string[] {
  return [...new Set([...old.keys(), ...rules.keys()])].filter((path) => {
    const [before, now] = [old.get(path), rules.get(path)];
    if (JSON.stringify(before) === JSON.stringify(now)) return false;
    const name = path.split(".").at(-1) ?? "";
    // "lte: 9" accepts what "lt: 9" accepts, and "gte" likewise.
    const inclusive = name === "lte" || name === "gte" ? old.get(path.slice(0, -1)) : undefined;
    return !(widerIf[name] ?? ifRemoved)(before ?? inclusive, now);
  });
}

// 64-bit numbers and durations are strings, such as "3.5s". Timestamps are dates.
// 64-bit numbers and durations are strings, such as "3.5s".
function toNumber(value: JsonValue): number {
  if (typeof value !== "string") return Number(value);
  return /^\d{4}-/.test(value) ? Date.parse(value) : Number.parseFloat(value);
}

function isSubset(some: JsonValue, all: JsonValue): boolean {
  const known = new Set(itemsOf(all));
  return itemsOf(some).every((item) => known.has(item));
}

// A CEL expression has an id and a message, which may change.
function itemsOf(value: JsonValue): readonly string[] {
  return (Array.isArray(value) ? value : [value]).map((item) =>
    JSON.stringify(item instanceof Object && "expression" in item ? item["expression"] : item),
  );
}
