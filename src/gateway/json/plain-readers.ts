import type { DescEnum, DescField, DescMessage, JsonValue, Message } from "@bufbuild/protobuf";
import { create, fromJson, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc, ListValueSchema, StructSchema, ValueSchema, type WktWrapperDesc } from "@bufbuild/protobuf/wkt";
import { takesNull } from "./field-reader.ts";
import {
  asFieldValues,
  createFieldSetter,
  type FieldSetter,
  type FieldValues,
  localFormOf,
  setOwn,
} from "./field-values.ts";
import { enumNumberByName } from "./names.ts";
import { type IntegerRange, int32, integerRangeOf } from "./numbers.ts";
import { oncePer } from "./once-per.ts";
import { enumNumber, isMapKey, messageForm, scalarForm } from "./text-forms.ts";
import { boundedByScanner } from "./well-known-readers.ts";

/** Thrown where the exact reader has to look at the text: it may take the value, or it says what is wrong with it. */
export const unsure: Error = new Error("not read");

/** Reads a value of what `JSON.parse` returns, as a protobuf-es message stores it. @throws {@link unsure} */
export type PlainReader = (json: JsonValue) => unknown;

/** Reads one field. It is set at once or, after {@link unsure}, not at all. */
export interface PlainFieldReader {
  readonly field: DescField;
  /** The JSON name, if this is the reader for a proto name that differs from it. */
  readonly otherName: string | undefined;
  read(fields: FieldValues, json: JsonValue): void;
}

/** The readers of message types, for one spelling of values; each is created on first use. */
export interface PlainReaders {
  /** Returns the reader of a message type, for its own JSON form if it has one. */
  of(desc: DescMessage): PlainReader;
  /** Returns the readers of the fields of a message by their names in JSON. */
  fieldsOf(desc: DescMessage): ReadonlyMap<string, PlainFieldReader>;
  /** Whether integers must be in canonical form. */
  readonly canonical: boolean;
  /** Whether names of enum values may lack their prefix. */
  readonly shortEnumNames: boolean;
}

/** Creates the readers for one spelling of values. */
export function createPlainReaders(canonical: boolean, shortEnumNames: boolean): PlainReaders {
  const readers: PlainReaders = {
    canonical,
    shortEnumNames,
    of: oncePer((desc) => createWellKnownReader(desc, readers) ?? createMessageReader(desc, readers)),
    fieldsOf: oncePer((desc) => createFieldReaders(desc, readers)),
  };
  return readers;
}

function createMessageReader(desc: DescMessage, readers: PlainReaders): PlainReader {
  const fields = readers.fieldsOf(desc);
  return (json) => {
    if (!isObject(json)) throw unsure;
    const message: Message & FieldValues = create(desc);
    for (const name in json) {
      const field = fields.get(name);
      if (field === undefined) throw unsure;
      if (field.otherName !== undefined && Object.hasOwn(json, field.otherName)) throw unsure;
      field.read(message, json[name] ?? null);
    }
    return message;
  };
}

function createFieldReaders(desc: DescMessage, readers: PlainReaders): Map<string, PlainFieldReader> {
  const byName = new Map<string, PlainFieldReader>();
  const made = desc.fields.map((field) => ({ field, otherName: undefined, read: createFieldReader(field, readers) }));
  for (const reader of made) byName.set(reader.field.jsonName, reader);
  // If the JSON name of one is the proto name of another, it means the latter.
  for (const reader of made) {
    const { name, jsonName } = reader.field;
    byName.set(name, name === jsonName ? reader : { ...reader, otherName: jsonName });
  }
  return byName;
}

function createFieldReader(field: DescField, readers: PlainReaders): PlainFieldReader["read"] {
  const store = createFieldSetter(field);
  const read = createWholeReader(field, readers);
  if (takesNull(field) && isSingular(field)) return (fields, json) => storeOnly(field, store, fields, read(json));
  if (field.oneof === undefined) {
    return (fields, json) => {
      if (json !== null) store(fields, read(json));
    };
  }
  return (fields, json) => {
    if (json !== null) storeOnly(field, store, fields, read(json));
  };
}

// Sets a field, of whose oneof no other member may be set.
function storeOnly({ oneof }: DescField, store: FieldSetter, fields: FieldValues, value: unknown): void {
  if (oneof !== undefined && asFieldValues(fields[oneof.localName])["case"] !== undefined) throw unsure;
  store(fields, value);
}

function isSingular({ fieldKind }: DescField): boolean {
  return fieldKind !== "list" && fieldKind !== "map";
}

// Reads all values of a field.
function createWholeReader(field: DescField, readers: PlainReaders): PlainReader {
  const read = createValueReader(field, readers);
  if (field.fieldKind === "list") return (json) => readList(json, read, takesNull(field));
  if (field.fieldKind === "map") return (json) => readMap(json, read, takesNull(field), field.mapKey);
  return read;
}

function readList(json: JsonValue, read: PlainReader, mayBeNull: boolean): unknown[] {
  if (!Array.isArray(json)) throw unsure;
  const items: unknown[] = [];
  for (const item of json) {
    if (item === null && !mayBeNull) throw unsure;
    items.push(read(item));
  }
  return items;
}

function readMap(json: JsonValue, read: PlainReader, mayBeNull: boolean, key: ScalarType): FieldValues {
  if (!isObject(json)) throw unsure;
  const entries: FieldValues = {};
  for (const name in json) {
    const value = json[name] ?? null;
    if ((value === null && !mayBeNull) || !isMapKey(name, key)) throw unsure;
    setOwn(entries, name, read(value));
  }
  return entries;
}

// Reads a value of a field, or an element of it.
function createValueReader(field: DescField, readers: PlainReaders): PlainReader {
  const { message } = field;
  if (field.enum !== undefined) return createEnumReader(field.enum, readers);
  if (message === undefined) {
    const longAsString = field.fieldKind !== "map" && field.longAsString;
    return createScalarReader(field.scalar, longAsString, readers);
  }
  const form = localFormOf({ ...field, message });
  if (form === "json-object") return (json) => (isObject(json) ? json : refuse());
  if (form === "unwrapped" && isWrapperDesc(message)) return createWrappedReader(message, readers);
  // Not before it is needed, because the type may be the one that is being compiled.
  let read: PlainReader | undefined;
  return (json) => (read ??= readers.of(message))(json);
}

function createEnumReader(desc: DescEnum, { shortEnumNames }: PlainReaders): PlainReader {
  return (json) => {
    if (typeof json === "string") return enumNumberByName(desc, json, shortEnumNames) ?? refuse();
    if (json === null) return 0;
    return enumNumber(desc, toInteger(json, int32)) ?? refuse();
  };
}

function createWrappedReader({ fields: [inner] }: WktWrapperDesc, readers: PlainReaders): PlainReader {
  return createScalarReader(inner.scalar, inner.longAsString, readers);
}

function createScalarReader(scalar: ScalarType, longAsString: boolean, { canonical }: PlainReaders): PlainReader {
  const form = scalarForm(scalar, longAsString);
  const parseString = (json: JsonValue): unknown =>
    (typeof json === "string" ? form.parse(json, canonical) : undefined) ?? refuse();
  const range = integerRangeOf(scalar);
  if (range !== undefined) return createIntegerReader(range, longAsString, canonical, parseString);
  switch (scalar) {
    case ScalarType.BOOL:
      return (json) => (typeof json === "boolean" ? json : refuse());
    case ScalarType.STRING:
      return (json) => (typeof json === "string" ? json : refuse());
    case ScalarType.FLOAT:
      return (json) =>
        typeof json === "number" && Number.isFinite(Math.fround(json)) ? Math.fround(json) : parseString(json);
    case ScalarType.DOUBLE:
      return (json) => (typeof json === "number" ? json : parseString(json));
    default:
      return parseString;
  }
}

function createIntegerReader(
  range: IntegerRange,
  longAsString: boolean,
  canonical: boolean,
  parseString: PlainReader,
): PlainReader {
  return (json) => {
    if (typeof json !== "number") return parseString(json);
    const value = canonical && Object.is(json, -0) ? undefined : toInteger(json, range);
    if (value === undefined) throw unsure;
    if (!range.big) return value;
    return longAsString ? String(value) : BigInt(value);
  };
}

// Returns a number if it is an integer of the range, of which a double shows all digits. Never -0.
function toInteger(json: JsonValue, { min, max }: IntegerRange): number | undefined {
  return typeof json === "number" && Number.isSafeInteger(json) && json >= min && json <= max ? json + 0 : undefined;
}

function createWellKnownReader(desc: DescMessage, readers: PlainReaders): PlainReader | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Any":
      // It may come before its type.
      return refuse;
    case "google.protobuf.Struct":
      return (json) => (isObject(json) ? fromJson(StructSchema, json, boundedByScanner) : refuse());
    case "google.protobuf.Value":
      return (json) => fromJson(ValueSchema, json, boundedByScanner);
    case "google.protobuf.ListValue":
      return (json) => (Array.isArray(json) ? fromJson(ListValueSchema, json, boundedByScanner) : refuse());
    default:
      return isWrapperDesc(desc) ? createWrapperReader(desc, readers) : createFormReader(desc, readers);
  }
}

function createWrapperReader(desc: WktWrapperDesc, readers: PlainReaders): PlainReader {
  const read = createWrappedReader(desc, readers);
  const store = createFieldSetter(desc.fields[0]);
  return (json) => {
    const value = read(json);
    const wrapper = create(desc);
    store(wrapper, value);
    return wrapper;
  };
}

// Reads a Timestamp, a Duration or a FieldMask, which are strings.
function createFormReader(desc: DescMessage, { canonical }: PlainReaders): PlainReader | undefined {
  const form = messageForm(desc, false);
  return form && ((json) => (typeof json === "string" ? form.parse(json, canonical) : undefined) ?? refuse());
}

function isObject(json: JsonValue): json is { readonly [name: string]: JsonValue } {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function refuse(): never {
  throw unsure;
}
