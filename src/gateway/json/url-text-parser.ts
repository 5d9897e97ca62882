import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { create, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { parseBase64 } from "./base64.ts";
import { enumHasNumber, enumNumberByName } from "./enums.ts";
import { parseFieldMask } from "./field-mask.ts";
import { parseText } from "./field-problem.ts";
import { createFieldSetter, localFormOf } from "./field-values.ts";
import { parseFloatText } from "./floats.ts";
import { createIntegerParser, enumNumberRange, integerRangeOf, parseCanonicalInteger } from "./integers.ts";
import { parseDuration, parseTimestamp } from "./times.ts";

/**
 * Parses the decoded text of a path variable or a query parameter into the value of a field, as a protobuf-es message
 * stores it. Throws a FieldProblem when the text is not a value of the field.
 */
export type UrlTextParser = (text: string) => unknown;

/**
 * Creates the parser for a field's values; for a repeated field, the parser for one element.
 *
 * Integers must be in canonical form, so that each value has exactly one URL. Everything else is spelled as in proto3
 * JSON, without the quotes.
 *
 * @returns `undefined` when values of the field have no text form: maps, and messages other than wrappers, Timestamp,
 * Duration and FieldMask
 */
export function createUrlTextParser(field: DescField): UrlTextParser | undefined {
  if (field.fieldKind === "map") return undefined;
  if (field.message !== undefined) return createMessageParser(field);
  if (field.enum !== undefined) return createEnumParser(field.enum);
  return createScalarParser(field.scalar, field.longAsString);
}

function createScalarParser(scalar: ScalarType, longAsString: boolean): UrlTextParser {
  const range = integerRangeOf(scalar);
  if (range !== undefined) return createIntegerParser(range, longAsString);
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

function createEnumParser(desc: DescEnum): UrlTextParser {
  return createParser(`a value of enum ${desc.typeName}`, (text) => {
    const byName = enumNumberByName(desc, text);
    if (byName !== undefined) return byName;
    const number = parseCanonicalInteger(text, enumNumberRange);
    return typeof number === "number" && enumHasNumber(desc, number) ? number : undefined;
  });
}

function createMessageParser(field: DescField & { readonly message: DescMessage }): UrlTextParser | undefined {
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

function createWrapperParser(field: DescField & { readonly message: DescMessage }): UrlTextParser | undefined {
  const { message } = field;
  const [inner] = message.fields;
  if (inner?.fieldKind !== "scalar") return undefined;
  const parse = createScalarParser(inner.scalar, inner.longAsString);
  if (localFormOf(field) === "unwrapped") return parse;
  const store = createFieldSetter(inner);
  return (text) => {
    const wrapper = create(message);
    store(wrapper, parse(text));
    return wrapper;
  };
}

function parseBool(text: string): boolean | undefined {
  if (text === "true") return true;
  return text === "false" ? false : undefined;
}

function createParser(what: string, parse: (text: string) => unknown): UrlTextParser {
  return (text) => parseText(text, what, parse);
}
