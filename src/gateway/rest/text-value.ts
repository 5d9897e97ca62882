import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { create, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { parseBase64 } from "../json/bytes.ts";
import { parseDuration } from "../json/duration.ts";
import { enumHasNumber, enumNumberByName } from "../json/enums.ts";
import { parseFieldMask } from "../json/field-mask.ts";
import { FieldProblem, quote } from "../json/field-problem.ts";
import { createFieldStore, fieldsOf, localFormOf } from "../json/field-store.ts";
import { parseFloatText } from "../json/floats.ts";
import { enumNumberRange, integerRangeOf, parseCanonicalInteger } from "../json/integers.ts";
import { parseTimestamp } from "../json/timestamp.ts";

/**
 * Parses the text of a path variable or a query parameter, already decoded, into the value of a field as a
 * protobuf-es message stores it. Throws a {@link FieldProblem} when the text is no such value.
 */
export type TextParser = (text: string) => unknown;

/**
 * Makes the parser of a field's values, for a repeated field that of one element.
 *
 * Integers are taken in their one canonical spelling, so that one value has one URL. Everything else is
 * spelled as in proto3 JSON, without the quotes.
 *
 * @returns the parser, or `undefined` when values of the field have no text form: maps, and messages other
 * than wrappers, Timestamp, Duration and FieldMask
 */
export function createTextParser(field: DescField): TextParser | undefined {
  if (field.fieldKind === "map") return undefined;
  if (field.message !== undefined) return createMessageParser(field);
  if (field.enum !== undefined) return createEnumParser(field.enum);
  return createScalarParser(field.scalar, field.longAsString);
}

function createScalarParser(scalar: ScalarType, longAsString: boolean): TextParser {
  const range = integerRangeOf(scalar);
  if (range !== undefined) {
    const article = range.min === 0n ? "a" : "an";
    const parse = createParser(`${article} ${range.name}`, (text) => parseCanonicalInteger(text, range));
    return longAsString ? (text) => String(parse(text)) : parse;
  }
  switch (scalar) {
    case ScalarType.BOOL:
      return createParser("true or false", parseBool);
    case ScalarType.BYTES:
      return createParser("base64", parseBase64);
    case ScalarType.FLOAT:
      return createParser("a float", (text) => parseFloatText(text, true));
    case ScalarType.DOUBLE:
      return createParser("a double", (text) => parseFloatText(text, false));
    default:
      return (text) => text;
  }
}

function createEnumParser(desc: DescEnum): TextParser {
  return createParser(`a value of enum ${desc.typeName}`, (text) => {
    const byName = enumNumberByName(desc, text);
    if (byName !== undefined) return byName;
    const number = parseCanonicalInteger(text, enumNumberRange);
    return typeof number === "number" && enumHasNumber(desc, number) ? number : undefined;
  });
}

function createMessageParser(field: DescField & { readonly message: DescMessage }): TextParser | undefined {
  const { message } = field;
  switch (message.typeName) {
    case "google.protobuf.Timestamp":
      return createParser("an RFC 3339 time from year 1 to 9999", parseTimestamp);
    case "google.protobuf.Duration":
      return createParser('a duration such as "1.5s"', parseDuration);
    case "google.protobuf.FieldMask":
      return createParser("a list of field paths", (text) => parseFieldMask(text, true));
    default:
      return isWrapperDesc(message) ? createWrapperParser(field) : undefined;
  }
}

function createWrapperParser(field: DescField & { readonly message: DescMessage }): TextParser | undefined {
  const { message } = field;
  const [inner] = message.fields;
  if (inner?.fieldKind !== "scalar") return undefined;
  const parse = createScalarParser(inner.scalar, inner.longAsString);
  if (localFormOf(field) === "unwrapped") return parse;
  const store = createFieldStore(inner);
  return (text) => {
    const wrapper = create(message);
    store(fieldsOf(wrapper), parse(text));
    return wrapper;
  };
}

function parseBool(text: string): boolean | undefined {
  if (text === "true") return true;
  return text === "false" ? false : undefined;
}

function createParser(what: string, parse: (text: string) => unknown): TextParser {
  return (text) => {
    const value = parse(text);
    if (value === undefined) throw new FieldProblem(`${quote(text)} is not ${what}`);
    return value;
  };
}
