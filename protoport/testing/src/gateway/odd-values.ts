import type { Dice } from "../dice.ts";

/** Values that a handler in JavaScript may set, regardless of the field type. */
// oxfmt-ignore
const odd: readonly (() => unknown)[] = [
  () => undefined, () => null, () => NaN, () => Infinity, () => -1, () => -0, () => 1.5, () => 127.5, () => 200,
  () => 2 ** 31, () => -(2 ** 31), () => 2 ** 32 - 1, () => 2 ** 32, () => 1e300, () => "", () => "5", () => "-5",
  () => "five", () => "ein längerer Text, der länger als neununddreißig Zeichen ist", () => "half \ud800", () => true,
  () => false, () => 0n, () => 5n, () => -(2n ** 63n), () => 2n ** 63n, () => 2n ** 64n, () => Uint8Array.of(1, 2),
  () => [], () => [1, undefined], () => ["a", 1, 2n], () => ({}), () => ({ case: undefined }),
  () => ({ case: "c2000000", value: 7 }), () => ({ $typeName: "random.M1" }),
  () => ({ true: true, "1": "1", "01": 1, "-0": 0, "1.0": 1, a: "b" }), () => ({ "1e3": 1 }), () => ({ "1e3": "a" }),
];

/** Sets a random field, list item or map value in a message or nested message to an unexpected value. */
export function putSomethingOdd(message: object, dice: Dice): void {
  const name = dice.oneOf(Object.keys(message));
  const value: unknown = Reflect.get(message, name);
  const isOpen = typeof value === "object" && value !== null && !(value instanceof Uint8Array);
  if (isOpen && Object.keys(value).length > 0 && dice.roll(4) !== 0) putSomethingOdd(value, dice);
  else Reflect.set(message, name, dice.oneOf(odd)());
}
