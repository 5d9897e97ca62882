import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  isWrapperDesc,
  type ListValue,
  NullValue,
  type Struct,
  type Value,
  type WktWrapperDesc,
} from "@bufbuild/protobuf/wkt";
import { throwBailOut } from "../codegen.ts";
import { createFieldSetter, setOwn } from "./field-values.ts";
import { enumValuesByName } from "./names.ts";
import { int32, type IntegerRange, integerRangeOf } from "./numbers.ts";
import { countStrings, type ReadState } from "./parse-plain.ts";
import { enumNumber, messageForm, scalarTextForm } from "./text-forms.ts";

/** Converts values from `JSON.parse` to the form in which a protobuf-es message stores them. */
export interface PlainReader {
  /**
   * Reads a value, and adds its strings, including names, to the count in the state. If the total equals the number of
   * strings in the text, the text has no duplicate name.
   *
   * @throws bailOut if the exact reader must read the text, either to accept the value or to report the problem
   */
  read(json: JsonValue, state: ReadState): unknown;
}

/** Creates a field's reader. Messages must be wrappers or Structs. With `canonical`, integers must be canonical. */
export function createPlainValueReader(field: DescField, canonical: boolean): PlainReader {
  if (field.enum !== undefined) return createPlainEnumReader(field.enum);
  if (field.message === undefined) {
    return createScalarReader(field.scalar, field.fieldKind !== "map" && field.longAsString, canonical);
  }
  return isWrapperDesc(field.message) ? createWrappedReader(field.message, canonical) : structReader;
}

const structReader: PlainReader = {
  read(json, state) {
    if (!isPlainObject(json)) return throwBailOut();
    state.strings += countStrings(json, state.mayHaveLoneSurrogates);
    return json;
  },
};

function createPlainEnumReader(desc: DescEnum): PlainReader {
  const values = enumValuesByName(desc);
  return {
    read(json, state) {
      if (typeof json !== "string")
        return json === null ? 0 : (enumNumber(desc, toInteger(json, int32)) ?? throwBailOut());
      state.strings++;
      return values.get(json)?.number ?? throwBailOut();
    },
  };
}

function createWrappedReader({ fields: [inner] }: WktWrapperDesc, canonical: boolean): PlainReader {
  return createScalarReader(inner.scalar, inner.longAsString, canonical);
}

function createScalarReader(scalar: ScalarType, longAsString: boolean, canonical: boolean): PlainReader {
  const form = scalarTextForm(scalar, longAsString);
  const readText = (json: JsonValue, state: ReadState): unknown => {
    if (typeof json !== "string" || (state.mayHaveLoneSurrogates && !json.isWellFormed())) return throwBailOut();
    state.strings++;
    return form.parse(json, canonical) ?? throwBailOut();
  };
  const range = integerRangeOf(scalar);
  if (range !== undefined) {
    const toValue = createIntegerReader(range, longAsString, canonical);
    return { read: (json, state) => (typeof json === "number" ? toValue(json) : readText(json, state)) };
  }
  switch (scalar) {
    case ScalarType.BOOL:
      return { read: (json) => (typeof json === "boolean" ? json : throwBailOut()) };
    case ScalarType.FLOAT:
      return {
        read: (json, state) => (typeof json === "number" ? toFinite(Math.fround(json)) : readText(json, state)),
      };
    case ScalarType.DOUBLE:
      return { read: (json, state) => (typeof json === "number" ? toFinite(json) : readText(json, state)) };
    default:
      return { read: readText };
  }
}

function toFinite(value: number): number {
  return Number.isFinite(value) ? value : throwBailOut();
}

function createIntegerReader(
  range: IntegerRange,
  longAsString: boolean,
  canonical: boolean,
): (json: number) => unknown {
  return (json) => {
    const value = canonical && Object.is(json, -0) ? undefined : toInteger(json, range);
    if (value === undefined) return throwBailOut();
    if (!range.isBigInt) return value;
    return longAsString ? String(value) : BigInt(value);
  };
}

// Returns a value if the value is a safe integer in the range. -0 becomes 0.
function toInteger(json: JsonValue, { min, max }: IntegerRange): number | undefined {
  return typeof json === "number" && Number.isSafeInteger(json) && json >= min && json <= max ? json + 0 : undefined;
}

/** Creates the reader for a well-known type with its own JSON form. Returns `undefined` for every other type. */
export function createPlainWellKnownReader(desc: DescMessage, canonical: boolean): PlainReader | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Any":
      // The exact reader reads an Any, because the fields may come before `@type`.
      return { read: throwBailOut };
    case "google.protobuf.Struct":
      return { read: (json, state) => (isPlainObject(json) ? toStructMessage(json, state) : throwBailOut()) };
    case "google.protobuf.Value":
      return { read: toValueMessage };
    case "google.protobuf.ListValue":
      return { read: (json, state) => (Array.isArray(json) ? toListMessage(json, state) : throwBailOut()) };
    default:
      return isWrapperDesc(desc) ? createWrapperReader(desc, canonical) : createFormReader(desc, canonical);
  }
}

function createWrapperReader(desc: WktWrapperDesc, canonical: boolean): PlainReader {
  const readWrapped = createWrappedReader(desc, canonical);
  const setValue = createFieldSetter(desc.fields[0]);
  return {
    read(json, state) {
      const value = readWrapped.read(json, state);
      const wrapper = create(desc);
      setValue(wrapper, value);
      return wrapper;
    },
  };
}

// Creates the reader for a Timestamp, a Duration or a FieldMask, which are strings in JSON.
function createFormReader(desc: DescMessage, canonical: boolean): PlainReader | undefined {
  const form = messageForm(desc, false);
  return (
    form && {
      read(json, state) {
        if (typeof json !== "string") return throwBailOut();
        state.strings++;
        return form.parse(json, canonical) ?? throwBailOut();
      },
    }
  );
}

function isPlainObject(json: JsonValue): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

// Messages are object literals with the properties that `create()` sets, because literals are faster for large arrays.

/**
 * Converts a JSON value to a google.protobuf.Value, and counts its strings, including names.
 *
 * @throws bailOut for a number beyond a double's range, and for a lone surrogate
 */
export function toValueMessage(json: JsonValue, state: ReadState): Value {
  return { $typeName: "google.protobuf.Value", kind: toKind(json, state) };
}

function toKind(json: JsonValue, state: ReadState): Value["kind"] {
  switch (typeof json) {
    case "string":
      if (state.mayHaveLoneSurrogates && !json.isWellFormed()) return throwBailOut();
      state.strings++;
      return { case: "stringValue", value: json };
    case "number":
      return Number.isFinite(json) ? { case: "numberValue", value: json } : throwBailOut();
    case "boolean":
      return { case: "boolValue", value: json };
    default:
      if (json === null) return { case: "nullValue", value: NullValue.NULL_VALUE };
      return Array.isArray(json)
        ? { case: "listValue", value: toListMessage(json, state) }
        : { case: "structValue", value: toStructMessage(json, state) };
  }
}

/** Converts a JSON array to a google.protobuf.ListValue, as {@link toValueMessage} does for a value. */
export function toListMessage(json: readonly JsonValue[], state: ReadState): ListValue {
  const values: Value[] = [];
  for (const item of json) values.push(toValueMessage(item, state));
  return { $typeName: "google.protobuf.ListValue", values };
}

/** Converts a JSON object to a google.protobuf.Struct, as {@link toValueMessage} does for a value. */
export function toStructMessage(json: JsonObject, state: ReadState): Struct {
  const fields: Struct["fields"] = {};
  for (const name in json) {
    state.strings++;
    const value = json[name];
    if (value !== undefined) setOwn(fields, name, toValueMessage(value, state));
  }
  return { $typeName: "google.protobuf.Struct", fields };
}
