import type { DescEnum } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { parseBase64 } from "./bytes.ts";
import { enumHasNumber, enumNumberByName } from "./enums.ts";
import { parseFiniteNumber, parseFloatText } from "./floats.ts";
import type { IntegerRange } from "./integers.ts";
import { enumNumberRange, integerRangeOf, parseCanonicalInteger, parseExactInteger } from "./integers.ts";
import { FieldProblem, quote } from "./field-problem.ts";
import type { ValueReader } from "./read-context.ts";
import { absent } from "./read-context.ts";

/**
 * Makes the reader of a scalar type, as the proto3 JSON mapping defines it.
 *
 * @param longAsString - whether 64-bit integers are stored as decimal strings (`jstype = JS_STRING`)
 */
export function createScalarReader(scalar: ScalarType, longAsString: boolean): ValueReader {
  const range = integerRangeOf(scalar);
  if (range !== undefined) {
    const readInteger = createIntegerReader(range);
    return longAsString ? (context) => String(readInteger(context)) : readInteger;
  }
  switch (scalar) {
    case ScalarType.BOOL:
      return readBool;
    case ScalarType.BYTES:
      return readBytes;
    case ScalarType.FLOAT:
      return createFloatReader(true);
    case ScalarType.DOUBLE:
      return createFloatReader(false);
    default:
      return readText;
  }
}

/** Makes the reader of an enum: a name, or a number that the enum may hold. */
export function createEnumReader(desc: DescEnum): ValueReader {
  return ({ scanner, rejectUnknown }) => {
    const kind = scanner.peek();
    if (kind === "string") {
      const name = scanner.readString();
      const number = enumNumberByName(desc, name);
      if (number !== undefined) return number;
      // A name from a newer schema is ignored together with fields from it, as the JSON mapping says.
      if (!rejectUnknown) return absent;
      throw new FieldProblem(`${quote(name)} is no value of enum ${desc.typeName}`);
    }
    if (kind !== "number") throw new FieldProblem(`a value of enum ${desc.typeName} is a name or a number`);
    const text = scanner.readNumber();
    const number = parseExactInteger(text, enumNumberRange);
    if (typeof number === "number" && enumHasNumber(desc, number)) return number;
    throw new FieldProblem(`${quote(text)} is no value of enum ${desc.typeName}`);
  };
}

function createIntegerReader(range: IntegerRange): ValueReader {
  return ({ scanner, canonicalIntegers }) => {
    const kind = scanner.peek();
    if (kind !== "string" && kind !== "number") throw new FieldProblem(`not ${nounOf(range)}`);
    const text = kind === "string" ? scanner.readString() : scanner.readNumber();
    const value = canonicalIntegers ? parseCanonicalInteger(text, range) : parseExactInteger(text, range);
    if (value === undefined) throw integerProblem(text, range);
    return value;
  };
}

/** The refusal of a text that is not an integer of the range, or not in the spelling that is asked for. */
export function integerProblem(text: string, range: IntegerRange): FieldProblem {
  return new FieldProblem(`${quote(text)} is not ${nounOf(range)}`);
}

function nounOf(range: IntegerRange): string {
  return range.min === 0n ? `a ${range.name}` : `an ${range.name}`;
}

function createFloatReader(single: boolean): ValueReader {
  const name = single ? "float" : "double";
  return ({ scanner }) => {
    const kind = scanner.peek();
    if (kind !== "string" && kind !== "number") throw new FieldProblem(`not a ${name}`);
    const text = kind === "string" ? scanner.readString() : scanner.readNumber();
    const value = kind === "string" ? parseFloatText(text, single) : parseFiniteNumber(text, single);
    if (value === undefined) throw new FieldProblem(`${quote(text)} is not a ${name}`);
    return value;
  };
}

const readBool: ValueReader = ({ scanner }) => {
  const kind = scanner.peek();
  if (kind !== "true" && kind !== "false") throw new FieldProblem("not true or false");
  scanner.readLiteral(kind);
  return kind === "true";
};

const readText: ValueReader = ({ scanner }) => {
  if (scanner.peek() !== "string") throw new FieldProblem("not a string");
  return scanner.readString();
};

const readBytes: ValueReader = ({ scanner }) => {
  if (scanner.peek() !== "string") throw new FieldProblem("not a base64 string");
  const text = scanner.readString();
  const value = parseBase64(text);
  if (value === undefined) throw new FieldProblem(`${quote(text)} is not base64`);
  return value;
};
