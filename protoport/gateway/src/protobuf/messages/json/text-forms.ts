import { create, type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { parseFieldMask } from "./field-mask.ts";
import { FieldProblem, quoteValue } from "./field-problem.ts";
import { createFieldSetter, localFormOf } from "./field-values.ts";
import type { JsonKind } from "./json-scanner.ts";
import { enumNumberByName } from "./names.ts";
import {
  digitsOfRoundedInteger,
  int32,
  integerRangeOf,
  parseCanonicalInteger,
  parseExactInteger,
  parseFloatText,
} from "./numbers.ts";
import { parseDuration, parseTimestamp } from "./times.ts";

/** The text form of a type's values. The text is used in URLs, and in JSON as a string, a number or a literal. */
export interface TextForm {
  /** The noun with which error messages describe a valid text. */
  readonly noun: string;
  /** The kinds of JSON value that can hold the text. */
  readonly kinds: readonly JsonKind[];
  /** Returns the value as a message stores it, or `undefined`. With `canonical`, integers must be in canonical form. */
  parse(text: string, canonical: boolean): unknown;
}

/** Parses a text. @throws FieldProblem that quotes the text if the text does not have this form */
export function parseText(text: string, form: TextForm, canonical: boolean): unknown {
  const value = form.parse(text, canonical);
  if (value !== undefined) return value;
  const isAccepted = canonical && form.parse(text, false) !== undefined;
  throw new FieldProblem(describeMismatch(text, form.noun), isAccepted ? "rest.json.canonicalIntegers" : undefined);
}

function describeMismatch(text: string, noun: string): string {
  const digits = noun.endsWith("64") ? digitsOfRoundedInteger(text) : undefined;
  if (digits === undefined) return `${quoteValue(text)} is not ${noun}`;
  return `the body parser has rounded ${digits} to a double, which has 53 bits; send ${noun} as a string`;
}

const string: readonly JsonKind[] = ["string"];
// The proto3 JSON mapping also accepts every number as a string.
const number: readonly JsonKind[] = ["number", "string"];
const booleans = new Map([
  ["true", true],
  ["false", false],
]);

/** Returns a scalar's text form in proto3 JSON. With `longAsString`, 64-bit integers are stored as decimal strings. */
export function scalarTextForm(scalar: ScalarType, longAsString: boolean): TextForm {
  const range = integerRangeOf(scalar);
  if (range !== undefined) {
    const parse = (text: string, canonical: boolean): bigint | number | undefined =>
      canonical ? parseCanonicalInteger(text, range) : parseExactInteger(text, range);
    const noun = range.min === 0n ? `a ${range.name}` : `an ${range.name}`;
    if (!longAsString) return { noun, kinds: number, parse };
    return { noun, kinds: number, parse: (text, canonical) => parse(text, canonical)?.toString() };
  }
  switch (scalar) {
    case ScalarType.BOOL:
      return { noun: "true or false", kinds: ["true", "false"], parse: (text) => booleans.get(text) };
    case ScalarType.BYTES:
      return { noun: "base64", kinds: string, parse: parseBase64 };
    case ScalarType.FLOAT:
      return { noun: "a float", kinds: number, parse: (text) => parseFloatText(text, true) };
    case ScalarType.DOUBLE:
      return { noun: "a double", kinds: number, parse: (text) => parseFloatText(text, false) };
    default:
      return { noun: "a string", kinds: string, parse: (text) => text };
  }
}

/**
 * Returns the text form of a wrapper, Timestamp, Duration or FieldMask, or `undefined`. With `inUrl`, a field mask may
 * also have proto names, because URLs use proto names and JSON names.
 */
export function messageForm(desc: DescMessage, inUrl: boolean): TextForm | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return { noun: "an RFC 3339 time from year 1 to 9999", kinds: string, parse: parseTimestamp };
    case "google.protobuf.Duration":
      return { noun: 'a duration such as "1.5s"', kinds: string, parse: parseDuration };
    case "google.protobuf.FieldMask": {
      const noun = `a comma-separated list of ${inUrl ? "" : "lowerCamelCase "}field paths`;
      return { noun, kinds: string, parse: (text) => parseFieldMask(text, inUrl) };
    }
    default:
      return wrapperForm(desc);
  }
}

function wrapperForm(desc: DescMessage): TextForm | undefined {
  const unwrappedForm = bareWrapperForm(desc);
  const [inner] = desc.fields;
  if (unwrappedForm === undefined || inner === undefined) return undefined;
  const setValue = createFieldSetter(inner);
  return {
    ...unwrappedForm,
    parse(text, canonical) {
      const value = unwrappedForm.parse(text, canonical);
      if (value === undefined) return undefined;
      const wrapper = create(desc);
      setValue(wrapper, value);
      return wrapper;
    },
  };
}

/** Returns the text form of a wrapper's value. Returns `undefined` for every other message type. */
export function bareWrapperForm(desc: DescMessage): TextForm | undefined {
  if (!isWrapperDesc(desc)) return undefined;
  const [inner] = desc.fields;
  return scalarTextForm(inner.scalar, inner.longAsString);
}

/** Parses decoded text from a URL into a field value as a message stores it. Throws a FieldProblem for invalid text. */
export type UrlTextParser = (text: string) => unknown;

/**
 * Creates the parser for a field's values, or for one element of a repeated field. Integers must be in canonical form,
 * so that each value has exactly one URL. Other values are spelled as in proto3 JSON, without quotes.
 *
 * @returns `undefined` for maps, and for messages other than wrappers, Timestamp, Duration and FieldMask
 */
export function createUrlTextParser(field: DescField): UrlTextParser | undefined {
  if (field.fieldKind === "map") return undefined;
  const form = urlFormOf(field);
  return form && ((text) => parseText(text, form, true));
}

/** Parses a map's key and value from their decoded texts. Throws a FieldProblem for an invalid key or value. */
type UrlEntryParser = (key: string, text: string) => readonly [key: string, value: unknown];

/** Creates the parser for a map's entries. Returns `undefined` if the map's values have no text form. */
export function createUrlEntryParser(field: DescField & { readonly fieldKind: "map" }): UrlEntryParser | undefined {
  const form = entryFormOf(field);
  if (form === undefined) return undefined;
  return (key, text) => {
    if (!isMapKey(key, field.mapKey)) throw new FieldProblem(`${quoteValue(key)} is not a valid key of this map`);
    return [key, parseText(text, form, true)];
  };
}

/** Returns whether a map may have a key. Integer keys must be canonical, because "1" and "01" would be the same key. */
export function isMapKey(key: string, type: ScalarType): boolean {
  const range = integerRangeOf(type);
  if (range !== undefined) return parseCanonicalInteger(key, range) !== undefined;
  return type !== ScalarType.BOOL || key === "true" || key === "false";
}

function entryFormOf(field: DescField & { readonly fieldKind: "map" }): TextForm | undefined {
  if (field.enum !== undefined) return enumTextForm(field.enum);
  return field.message === undefined ? scalarTextForm(field.scalar, false) : messageForm(field.message, true);
}

function urlFormOf(field: Exclude<DescField, { fieldKind: "map" }>): TextForm | undefined {
  if (field.enum !== undefined) return enumTextForm(field.enum);
  if (field.message === undefined) return scalarTextForm(field.scalar, field.longAsString);
  return (localFormOf(field) === "unwrapped" ? bareWrapperForm : messageForm)(field.message, true);
}

function enumTextForm(desc: DescEnum): TextForm {
  const parse = (text: string): number | undefined =>
    enumNumberByName(desc, text) ?? enumNumber(desc, parseCanonicalInteger(text, int32));
  return { noun: `a value of enum ${desc.typeName}`, kinds: [], parse };
}

/** Returns a number if an enum may hold it. A closed enum holds only declared numbers. */
export function enumNumber(desc: DescEnum, value: bigint | number | undefined): number | undefined {
  return typeof value === "number" && (desc.open || desc.value[value] !== undefined) ? value : undefined;
}

// Matches digits in both base64 alphabets (RFC 4648 §4 and §5).
const digits = /^[A-Za-z0-9+/_-]*$/;

/**
 * Decodes base64 and base64url, with or without padding, as proto3 JSON requires. Returns `undefined` for other
 * characters, an impossible length, or padding that does not complete the last group.
 */
export function parseBase64(text: string): Uint8Array | undefined {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const length = text.length - padding;
  if (length % 4 === 1 || (padding > 0 && text.length % 4 !== 0)) return undefined;
  // The digits are checked, because protobuf-es would skip spaces and accept padding in the middle.
  return digits.test(text.slice(0, length)) ? base64Decode(text) : undefined;
}
