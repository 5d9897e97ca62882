import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Dice } from "../dice.ts";
import { randomMessageTypes } from "./random-message.ts";

/** Returns random JSON for a message type, often valid, and often with an invalid or misleading part. */
export function rollJsonText(dice: Dice, desc: DescMessage): string {
  const text = new TextRoller(dice).message(desc, 0);
  return dice.roll(4) === 0 ? mutate(dice, text) : text;
}

const numbers = `0 1 -1 7 255 2147483647 2147483648 -2147483648 4294967295
9007199254740991 9007199254740992 9007199254740993 -9223372036854775808 9223372036854775807 18446744073709551615 -0 1.0 1.5
1e0 1E+2 10e-1 5e-1 1e-400 1e400 -1e400 0.1 -0.0
0e5 100.00 1.0000000000000000000000001 9007199254740990.7 0.99999999999999999999 1e22 3.4028236e38 1e15 123456789012345.0
1234567890123456.0 0.000000000000000000001 9007199254740993.0 1e16`.split(/\s/);
const badNumbers = ["01", "1.", ".5", "+1", "1e", "NaN", "Infinity", "0x1", "1_0"];
// oxfmt-ignore
const texts = [
  "", "a", "7", "-1", "1.0", "1e3", "07", "true", "NaN", "-Infinity", "QQ==", "_-8", "QQ=", "COLOR_RED", "SHADE_DARK",
];
const times = [
  "2024-02-29T12:30:45.123456789+01:00",
  "2023-02-29T00:00:00Z",
  "1970-01-01T00:00:00Z",
  "0001-01-01T00:00:00Z",
];
// oxfmt-ignore
const others = [
  "1.5s", "-0.5s", "1.5", "fooBar,a.b", "foo_bar", "NULL_VALUE", "9007199254740993", "99999999999999999999",
];
// oxfmt-ignore
const written = [
  "é", "🌱", "\\ud83c\\udf31", "\\ud800", "\\udfff", '\\"', "\\\\", "\\n", "\\u0000", "\\u0041", "\u2028", "\\x", "\t",
];
const spaces = ["", "", "", "", " ", "\n", "\r\t "];

class TextRoller {
  readonly #dice: Dice;
  /** Whether the text may have mistakes. */
  readonly #isHostile: boolean;

  constructor(dice: Dice) {
    this.#dice = dice;
    this.#isHostile = dice.roll(3) === 0;
  }

  message(desc: DescMessage, depth: number): string {
    const known = this.#wellKnown(desc, depth);
    if (known !== undefined && !this.#hostile(8)) return known;
    const members: string[] = [];
    const density = 1 + this.#dice.roll(5);
    const inOneof = new Set<string>();
    for (const field of desc.fields) {
      if (this.#dice.roll(8) >= density || (depth > 3 && field.message !== undefined)) continue;
      if (field.oneof !== undefined) {
        if (inOneof.has(field.oneof.name) && !this.#hostile(3)) continue;
        inOneof.add(field.oneof.name);
      }
      members.push(this.#member(this.#nameOf(field), this.#field(field, depth)));
      if (this.#hostile(12)) members.push(this.#member(this.#nameOf(field), this.#field(field, depth)));
    }
    if (this.#hostile(6)) members.push(this.#member(this.#string(), this.#plain(depth)));
    if (this.#hostile(12)) members.push(this.#member('"[kitchensink.v1.note]"', '"x"'));
    return this.#object(members);
  }

  #field(field: DescField, depth: number): string {
    if (this.#hostile(12)) return this.#plain(depth);
    if (this.#dice.roll(20) === 0) return "null";
    if (field.fieldKind === "list") return this.#array(this.#times(() => this.#value(field, depth)));
    if (field.fieldKind !== "map") return this.#value(field, depth);
    const key = (): string =>
      field.mapKey === ScalarType.STRING || this.#hostile(6)
        ? this.#string()
        : this.#dice.oneOf(
            field.mapKey === ScalarType.BOOL ? ['"true"', '"false"'] : ['"7"', '"0"', '"-1"', '"1e0"', '"01"'],
          );
    return this.#object(this.#times(() => this.#member(key(), this.#value(field, depth))));
  }

  #value(field: DescField, depth: number): string {
    if (this.#hostile(12)) return this.#plain(depth);
    if (this.#hostile(12)) return "null";
    if (field.message !== undefined) return this.message(field.message, depth + 1);
    if (field.enum !== undefined) {
      if (this.#dice.roll(3) === 0) return this.#number();
      return this.#hostile(3) ? this.#string() : `"${this.#dice.oneOf(field.enum.values).name}"`;
    }
    if (field.scalar === ScalarType.BOOL) return this.#dice.oneOf(["true", "false"]);
    if (field.scalar === ScalarType.STRING) return this.#string();
    if (field.scalar === ScalarType.BYTES) return this.#dice.oneOf(['""', '"QQ=="', '"-_8="', '"QQ"']);
    return this.#dice.roll(3) === 0 ? `"${this.#number()}"` : this.#number();
  }

  #wellKnown(desc: DescMessage, depth: number): string | undefined {
    switch (desc.typeName) {
      case "google.protobuf.Any": {
        const held = this.#dice.oneOf(randomMessageTypes);
        const type = `"@type":"x/${held.typeName}"`;
        const inner = depth > 3 ? "{}" : this.message(held, depth + 1);
        if (!inner.startsWith("{")) return `{${type},"value":${inner}}`;
        if (inner.length < 5) return this.#dice.oneOf(["{}", `{${type}}`]);
        return this.#dice.roll(2) === 0 ? `{${type},${inner.slice(1)}` : `${inner.slice(0, -1)},${type}}`;
      }
      case "google.protobuf.Timestamp":
        return `"${this.#dice.oneOf(times)}"`;
      case "google.protobuf.Duration":
      case "google.protobuf.FieldMask":
        return `"${this.#dice.oneOf(others)}"`;
      case "google.protobuf.Struct":
        return this.#plainObject(depth);
      case "google.protobuf.ListValue":
        return this.#array(this.#times(() => this.#plain(depth + 1)));
      case "google.protobuf.Value":
        return this.#plain(depth);
      default:
        return desc.typeName.endsWith("Value") && desc.fields[0] !== undefined
          ? this.#value(desc.fields[0], depth)
          : undefined;
    }
  }

  #plain(depth: number): string {
    const kind = this.#dice.roll(depth > 4 ? 5 : 7);
    if (kind < 3) return this.#dice.oneOf(["null", "true", "false"]);
    if (kind === 3) return this.#number();
    if (kind === 4) return this.#string();
    if (this.#hostile(40)) return `${"[".repeat(101 - depth)}${"]".repeat(101 - depth)}`;
    return kind === 5 ? this.#plainObject(depth) : this.#array(this.#times(() => this.#plain(depth + 1)));
  }

  #plainObject(depth: number): string {
    return this.#object(this.#times(() => this.#member(this.#string(), this.#plain(depth + 1))));
  }

  // Returns one name that the field has, as a JSON string, sometimes with an escape.
  #nameOf({ name, jsonName }: DescField): string {
    const chosen = this.#dice.roll(3) === 0 ? name : jsonName;
    if (this.#dice.roll(20) > 0) return `"${chosen}"`;
    return `"\\u${chosen.charCodeAt(0).toString(16).padStart(4, "0")}${chosen.slice(1)}"`;
  }

  #string(): string {
    const { roll } = { roll: (sides: number): number => this.#dice.roll(sides) };
    if (roll(3) === 0) return `"${this.#dice.oneOf([...texts, ...times, ...others])}"`;
    if (roll(12) === 0) return this.#dice.oneOf(['"__proto__"', '"constructor"', '"toString"', '"@type"']);
    const pieces = this.#isHostile ? written : written.slice(0, 3).concat(written.slice(5, 10));
    return `"${Array.from({ length: roll(3) }, () => this.#dice.oneOf([...pieces, "a", "b"])).join("")}"`;
  }

  #number(): string {
    return this.#hostile(20)
      ? this.#dice.oneOf(badNumbers)
      : this.#dice.oneOf(this.#isHostile ? numbers : numbers.slice(0, 12));
  }

  #member(name: string, value: string): string {
    return `${this.#space()}${name}${this.#space()}:${this.#space()}${value}${this.#space()}`;
  }

  readonly #object = (members: readonly string[]): string => `{${members.join(",")}}`;
  readonly #array = (items: readonly string[]): string => `[${this.#space()}${items.join(`${this.#space()},`)}]`;
  readonly #times = <Item>(make: () => Item): Item[] => Array.from({ length: this.#dice.roll(4) }, make);
  readonly #space = (): string => this.#dice.oneOf(spaces);
  readonly #hostile = (sides: number): boolean => this.#isHostile && this.#dice.roll(sides) === 0;
}

const cuts = ['"', "\\", "{", "}", "[", "]", ",", ":", "0", ".", "e", "-", " ", "\ufeff", "\u0000", "\ud800", "null"];

// Removes, repeats or inserts characters at a random position.
function mutate(dice: Dice, text: string): string {
  const at = dice.roll(text.length + 1);
  const end = Math.min(text.length, at + dice.roll(6));
  const change = dice.roll(4);
  if (change === 0) return text.slice(0, at) + text.slice(end);
  if (change === 1) return text.slice(0, end) + text.slice(at);
  return text.slice(0, at) + (change === 2 ? "" : dice.oneOf(cuts) + text.slice(at));
}
