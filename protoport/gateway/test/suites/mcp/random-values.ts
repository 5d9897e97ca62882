import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Dice } from "../../../../testing/src/dice.ts";

// oxfmt-ignore
const numbers = [
  0, -0, 1, -1, 1.5, 1e21, 5e-324, 3.4028235e38, 3.4028236e38, 1e308, -(2 ** 31), -(2 ** 31) - 1, 2 ** 31 - 1, 2 ** 31,
  2 ** 32 - 1, 2 ** 32, 2 ** 53,
];

const words =
  "0 -0 007 1e3 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 NaN -Infinity a " +
  "18446744073709551615 18446744073709551616 ä€😀 \u0000 \ud800 __proto__ toString true null NULL_VALUE COLOR_RED " +
  "COLOR_PINK SHADE_DARK QQ QQ== QR QQ= _-8 +/8 _/8 = 1s -1.5s 1.0000000001s 315576000000s 315576000000.1s -0s .5s 1.s " +
  "2026-01-31T12:00:00Z 2026-02-30T00:00:00Z 2026-12-31T23:59:60Z 2024-02-29T24:00:00Z 0000-01-01T00:00:00Z " +
  "0001-01-01T00:00:00+01:00 9999-12-31T23:59:59-01:00 2026-01-31T12:00:00+24:00 2026-01-31t12:00:00z " +
  "2026-01-31T12:00:00+0100 2026-01-31T12:00:00.1234567891Z fInt64 f_int64 a.b,c a,,b * a_b `A`";

const objects = [
  '{} [] [null] [[[]]] [1,"2",{"a":null}] [{}] {"":1} {"a":"b"} {"-0":{}} {"0":{},"1":{}} {"007":{}} {"true":1}',
  '{"__proto__":1} {"@type":"x/y"} {"@type":"x/kitchensink.v1.Nested"} {"@type":"x/kitchensink.v1.Nested","text":1}',
];

/** Values at the limits of types, and of their JSON texts. */
const parsed = objects.flatMap((line) => line.split(" ")).map((text): JsonValue => JSON.parse(text));
const others = ["", "2026-01-31 12:00:00Z", null, true, false];
export const edgeValues: readonly JsonValue[] = [...numbers, ...words.split(" "), ...others, ...parsed];

/** Returns an edge value in each form that a field can have: itself, and as an element in a list or a map. */
export function formsOf(edge: JsonValue): readonly JsonValue[] {
  const key = typeof edge === "string" ? edge : JSON.stringify(edge);
  return [edge, [edge], { 0: edge }, { true: edge }, Object.fromEntries([[key, 1]]), Object.fromEntries([[key, {}]])];
}

/** Returns a copy in which one part is an edge value, is missing, or has another name. */
export function mutate(dice: Dice, value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null || dice.roll(6) === 0) return dice.oneOf(edgeValues);
  if (Array.isArray(value)) {
    const at = dice.roll(value.length + 1);
    return [...value.slice(0, at), mutate(dice, value[at] ?? null), ...value.slice(at + 1)];
  }
  return mutateObject(dice, value);
}

/** Returns a copy in which one member, or part of it, differs. */
export function mutateObject(dice: Dice, value: JsonObject): JsonObject {
  const members = Object.entries(value);
  const at = dice.roll(members.length);
  const [name, member] = members[at] ?? ["a", null];
  const kind = dice.roll(8);
  const changed = kind === 0 ? [] : [[kind === 1 ? "a" : name, mutate(dice, member)] as const];
  return Object.fromEntries([...members.slice(0, at), ...changed, ...members.slice(at + 1)]);
}
