import type { DescEnum } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { parseBase64 } from "./base64.ts";
import { enumHasNumber, enumNumberByName } from "./enums.ts";
import { parseFloatText } from "./floats.ts";
import type { IntegerRange } from "./integers.ts";
import {
  enumNumberRange,
  integerProblem,
  integerRangeOf,
  nounOf,
  parseCanonicalInteger,
  parseExactInteger,
} from "./integers.ts";
import { FieldProblem, parseText, quote } from "./field-problem.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { ValueReader } from "./read-context.ts";
import { absent } from "./read-context.ts";

/**
 * Creates the reader of a scalar type, as the proto3 JSON mapping defines it.
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
      return readString;
  }
}

/** Creates the reader of an enum, which accepts a name or a number that the enum may hold. */
export function createEnumReader(desc: DescEnum): ValueReader {
  return ({ scanner, rejectUnknown, unknown, path }) => {
    const kind = scanner.peek();
    if (kind === "string") {
      const name = scanner.readString();
      const number = enumNumberByName(desc, name);
      if (number !== undefined) return number;
      if (rejectUnknown) throw new FieldProblem(`${quote(name)} is not a value of enum ${desc.typeName}`);
      // The JSON mapping ignores names from a newer schema together with fields from it.
      unknown.addEnumValue(name, path);
      return absent;
    }
    if (kind !== "number") throw new FieldProblem(`a value of enum ${desc.typeName} is a name or a number`);
    const text = scanner.readNumber();
    const number = parseExactInteger(text, enumNumberRange);
    if (typeof number === "number" && enumHasNumber(desc, number)) return number;
    throw new FieldProblem(`${quote(text)} is not a value of enum ${desc.typeName}`);
  };
}

function createIntegerReader(range: IntegerRange): ValueReader {
  return ({ scanner, canonicalIntegers }) => {
    const text = readNumberText(scanner, nounOf(range));
    const value = canonicalIntegers ? parseCanonicalInteger(text, range) : parseExactInteger(text, range);
    if (value === undefined) throw integerProblem(text, range);
    return value;
  };
}

function createFloatReader(single: boolean): ValueReader {
  const noun = single ? "a float" : "a double";
  const parse = (text: string): number | undefined => parseFloatText(text, single);
  return ({ scanner }) => parseText(readNumberText(scanner, noun), noun, parse);
}

// JSON may have any number as a string too.
function readNumberText(scanner: JsonScanner, noun: string): string {
  const kind = scanner.peek();
  if (kind === "string") return scanner.readString();
  if (kind === "number") return scanner.readNumber();
  throw new FieldProblem(`not ${noun}`);
}

const readBool: ValueReader = ({ scanner }) => {
  const kind = scanner.peek();
  if (kind !== "true" && kind !== "false") throw new FieldProblem("not true or false");
  scanner.readLiteral(kind);
  return kind === "true";
};

const readString: ValueReader = ({ scanner }) => {
  if (scanner.peek() !== "string") throw new FieldProblem("not a string");
  return scanner.readString();
};

const readBytes: ValueReader = ({ scanner }) => {
  if (scanner.peek() !== "string") throw new FieldProblem("not a base64 string");
  return parseText(scanner.readString(), "base64", parseBase64);
};
