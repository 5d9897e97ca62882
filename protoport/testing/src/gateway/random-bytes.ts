import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Dice } from "../dice.ts";

/** The frequency of invalid parts. The value n means that one in n parts is invalid. */
type Oddness = { readonly inField: number; readonly inBytes: number };

/** Returns random bytes that are mostly a valid message, and sometimes truncated, or with flipped bits or lengths. */
export function randomBytes(desc: DescMessage, dice: Dice, { inField, inBytes }: Oddness): Buffer {
  const bytes = fieldsOf(desc, dice, inField, 0);
  if (bytes.length > 0 && dice.roll(inBytes) === 0) {
    const at = dice.roll(bytes.length);
    const corruption = dice.roll(4);
    if (corruption === 0) bytes.splice(at);
    else if (corruption === 1) bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.roll(8));
    else if (corruption === 2) bytes.splice(at, 0, ...dice.bytes(4));
    else bytes.splice(at, 1 + dice.roll(4));
  }
  return Buffer.from(bytes);
}

function fieldsOf(desc: DescMessage, dice: Dice, oddness: number, depth: number): number[] {
  const bytes: number[] = [];
  const count = dice.roll(depth > 3 ? 2 : 6);
  for (let n = 0; n < count; n += 1) {
    const field = desc.fields[dice.roll(desc.fields.length)];
    if (field === undefined || dice.roll(oddness) === 0) bytes.push(...oddField(field?.number ?? 1, dice));
    else bytes.push(...fieldOf(field, dice, oddness, depth));
  }
  return bytes;
}

/** Returns an undeclared field, or a field with another type than declared. */
function oddField(declared: number, dice: Dice): number[] {
  const number = dice.oneOf([declared, declared, 0, 99, 5000, 536_870_911]);
  const wireType = dice.roll(8);
  const tag = varint(BigInt(((number << 3) | wireType) >>> 0), dice);
  if (wireType === 0) return [...tag, ...varint(BigInt(dice.roll(1000)), dice)];
  if (wireType === 1) return [...tag, 1, 2, 3, 4, 5, 6, 7, 8];
  if (wireType === 2) return [...tag, ...delimited([...dice.bytes(4)], dice)];
  if (wireType === 3) return [...tag, 8, 1, ...varint(BigInt(((number << 3) | 4) >>> 0), dice)];
  return wireType === 5 ? [...tag, 1, 2, 3, 4] : tag;
}

function fieldOf(field: DescField, dice: Dice, oddness: number, depth: number): number[] {
  const tag = (wireType: number): number[] => varint(BigInt(((field.number << 3) | wireType) >>> 0), dice);
  if (field.fieldKind === "map") {
    const key = [...varint(BigInt((1 << 3) | wireTypeOf(field.mapKey)), dice), ...scalar(field.mapKey, dice)];
    const value =
      field.mapKind === "message"
        ? [18, ...delimited(fieldsOf(field.message, dice, oddness, depth + 1), dice)]
        : [(2 << 3) | wireTypeOf(field.scalar ?? ScalarType.INT32), ...value1(field, dice)];
    const parts = dice.oneOf([[key, value], [key, value], [key, value], [value], [key], [value, key, value]]);
    return [...tag(2), ...delimited(parts.flat(), dice)];
  }
  if (field.message !== undefined) {
    const inner = fieldsOf(field.message, dice, oddness, depth + 1);
    const isGroup = "delimitedEncoding" in field && field.delimitedEncoding;
    return isGroup ? [...tag(3), ...inner, ...tag(4)] : [...tag(2), ...delimited(inner, dice)];
  }
  const wireType = wireTypeOf(field.scalar ?? ScalarType.INT32);
  if (field.fieldKind === "list" && wireType !== 2 && dice.roll(2) === 0) {
    const values = Array.from({ length: dice.roll(4) }, () => value1(field, dice)).flat();
    return [...tag(2), ...delimited(values, dice)];
  }
  return [...tag(wireType), ...value1(field, dice)];
}

function value1(field: DescField, dice: Dice): number[] {
  if (field.enum === undefined) return scalar(field.scalar ?? ScalarType.INT32, dice);
  return varint(BigInt.asUintN(64, dice.oneOf([0n, 1n, 2n, 300n, -1n, 1n, 2n, 77n])), dice);
}

const delimited = (bytes: readonly number[], dice: Dice): number[] => [...varint(BigInt(bytes.length), dice), ...bytes];

// oxfmt-ignore
const integers = [
  0n, 1n, -1n, 5n, 127n, 128n, -128n, 300n, 2n ** 31n - 1n, -(2n ** 31n), 2n ** 32n, 2n ** 53n + 1n, 2n ** 63n - 1n,
  -(2n ** 63n),
];
// oxfmt-ignore
const texts = [
  "", "a", "id", "__proto__", "constructor", "Grün", "\u{1f33f}", "\ufeffa", "\ufffd", "twelve bytes", "thirteen byte",
  "a text that is longer than one of thirty-nine characters",
  "ein längerer Text, der länger als neununddreißig Zeichen ist", "true", "-0", "1",
];

const bytesOf = (hex: string): number[] => [...Buffer.from(hex, "hex")];
const fixed64 = "0000000000000000 0000000000000080 000000000000f07f 0102030405060708 ffffffffffffffff"
  .split(" ")
  .map(bytesOf);
const fixed32 = "00000000 00000080 0000807f 01020304 ffffffff".split(" ").map(bytesOf);

function scalar(type: ScalarType, dice: Dice): number[] {
  const wireType = wireTypeOf(type);
  if (wireType === 0) return varint(BigInt.asUintN(64, dice.oneOf(integers)), dice);
  if (wireType !== 2) return dice.oneOf(wireType === 1 ? fixed64 : fixed32);
  if (dice.roll(40) === 0) return delimited([0x61, 0xff, 0xc3], dice);
  return delimited([...Buffer.from(dice.oneOf(texts))], dice);
}

/** Encodes a varint, sometimes in more bytes than needed. */
function varint(value: bigint, dice: Dice): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  if (dice.roll(60) !== 0) return bytes;
  for (let more = 1 + dice.roll(10); more > 0; more -= 1) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 0x80;
    bytes.push(0);
  }
  return bytes;
}

const { STRING, BYTES, FIXED32, SFIXED32, FLOAT, FIXED64, SFIXED64, DOUBLE } = ScalarType;

function wireTypeOf(type: ScalarType): number {
  if (type === STRING || type === BYTES) return 2;
  if (type === FIXED32 || type === SFIXED32 || type === FLOAT) return 5;
  return type === FIXED64 || type === SFIXED64 || type === DOUBLE ? 1 : 0;
}
