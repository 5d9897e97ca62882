import { type DescEnum, ScalarType } from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { asFieldValues } from "./field-values.ts";
import { shortEnumName } from "./names.ts";
import type { JsonStyle } from "./write-context.ts";

/** Writes a value as JSON text, from the form in which a protobuf-es message stores it. */
export type ValueWriter = (value: unknown) => string;

/** Creates the writer of values of a scalar type. It throws a TypeError for a value of another type. */
export function createScalarWriter(scalar: ScalarType, { int64Numbers }: JsonStyle): ValueWriter {
  switch (scalar) {
    case ScalarType.STRING:
      return writeString;
    case ScalarType.BOOL:
      return writeBoolean;
    case ScalarType.BYTES:
      return writeBytes;
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return writeFloat;
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return int64Numbers === true ? writeLongNumber : writeLong;
    default:
      return writeNumber;
  }
}

/** Creates the writer of values of an enum: their names, and numbers that have none. */
export function createEnumWriter(desc: DescEnum, style: JsonStyle): ValueWriter {
  if (desc.typeName === "google.protobuf.NullValue") return () => "null";
  if (style.enumAsInteger === true) return writeNumber;
  const names = new Map([...enumNames(desc, style)].map(([number, name]) => [number, JSON.stringify(name)]));
  return (value) => names.get(value) ?? writeNumber(value);
}

/** Returns the names of the values of an enum by their numbers. */
export function enumNames(desc: DescEnum, { shortEnumNames }: JsonStyle): ReadonlyMap<unknown, string> {
  return new Map(desc.values.map(({ number }) => [number, nameOf(desc, number, shortEnumNames === true)]));
}

// Of values with the same number, the first one gives the name. protobuf-es has JSON names of them since 2.12.
function nameOf(desc: DescEnum, number: number, short: boolean): string {
  const named: { readonly name: string; readonly jsonName?: string } | undefined = desc.value[number];
  const { name = "", jsonName = name } = named ?? {};
  // A JSON name of its own has no prefix to leave out.
  return (short && jsonName === name ? shortEnumName(desc, name) : undefined) ?? jsonName;
}

/** Writes a string. @throws TypeError for anything else */
export function writeString(value: unknown): string {
  if (typeof value !== "string") throw wrongType("a string", value);
  return value.length > shortUnitsMax || mayNeedEscapes(value) ? JSON.stringify(value) : `"${value}"`;
}

// UTF-16 units. To look at so few costs less than to call JSON.stringify.
const shortUnitsMax = 24;

// Quotes, backslashes, control characters and lone surrogates are escaped.
function mayNeedEscapes(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c || unit >= 0xd800) return true;
  }
  return false;
}

function writeBoolean(value: unknown): string {
  if (value === true) return "true";
  if (value === false) return "false";
  throw wrongType("a boolean", value);
}

function writeBytes(value: unknown): string {
  if (value instanceof Uint8Array) return `"${base64Encode(value)}"`;
  throw wrongType("a Uint8Array", value);
}

function writeFloat(value: unknown): string {
  if (typeof value !== "number") throw wrongType("a number", value);
  return Number.isFinite(value) ? String(value) : `"${String(value)}"`;
}

function writeNumber(value: unknown): string {
  if (typeof value !== "number") throw wrongType("a number", value);
  return Number.isFinite(value) ? String(value) : "null";
}

function writeLong(value: unknown): string {
  if (typeof value === "bigint") return `"${String(value)}"`;
  // As text where `jstype` asks for it. protobuf-es takes either, and a number.
  if (typeof value === "string") return JSON.stringify(value);
  if (Number.isInteger(value)) return `"${String(value)}"`;
  throw wrongType("a 64-bit integer", value);
}

function writeLongNumber(value: unknown): string {
  const text = writeLong(value);
  const number = Number(text.slice(1, -1));
  return Number.isSafeInteger(number) && text === `"${String(number)}"` ? String(number) : text;
}

/** Writes a google.protobuf.Struct that is stored as a plain object. */
export function writePlainObject(value: unknown): string {
  const entries = asFieldValues(value);
  const members = Object.keys(entries).map((key) => `${JSON.stringify(key)}:${writePlainValue(entries[key])}`);
  return `{${members.join(",")}}`;
}

function writePlainValue(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "boolean":
      return String(value);
    case "number":
      return writeFiniteNumber(value);
    default:
      if (value === null) return "null";
      return Array.isArray(value) ? `[${value.map(writePlainValue).join(",")}]` : writePlainObject(value);
  }
}

/** Writes the number of a google.protobuf.Value. @throws Error for NaN and infinite numbers */
export function writeFiniteNumber(value: number): string {
  if (Number.isFinite(value)) return String(value);
  throw new Error("a google.protobuf.Value cannot be NaN or infinite");
}

function wrongType(expected: string, value: unknown): TypeError {
  return new TypeError(`${typeof value} where ${expected} should be`);
}
