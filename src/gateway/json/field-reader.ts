import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import type { StoreField } from "./field-store.ts";
import { createFieldStore, fieldsOf, localFormOf, setOwn } from "./field-store.ts";
import { integerRangeOf, parseCanonicalInteger } from "./integers.ts";
import { FieldProblem, quote } from "./field-problem.ts";
import type { FieldReader, ReadContext, ValueReader } from "./read-context.ts";
import { absent, locateUnknown } from "./read-context.ts";
import { createEnumReader, createScalarReader } from "./scalar-readers.ts";
import { readJsonObject } from "./well-known-readers.ts";

type ListField = DescField & { readonly fieldKind: "list" };
type MapField = DescField & { readonly fieldKind: "map" };
type MessageTypedField = DescField & { readonly message: DescMessage };

/** Makes the reader of one field from its descriptor. */
export function createFieldReader(field: DescField): FieldReader {
  const store = createFieldStore(field);
  switch (field.fieldKind) {
    case "list":
      return { field, nullIsValue: false, read: createListReader(field) };
    case "map":
      return { field, nullIsValue: false, read: createMapReader(field) };
    case "message":
      return createMessageFieldReader(field, store);
    case "enum":
      return createSingularReader(field, createEnumReader(field.enum), store, isNullValueEnum(field));
    default:
      return createSingularReader(field, createScalarReader(field.scalar, field.longAsString), store, false);
  }
}

function createSingularReader(
  field: DescField,
  readValue: ValueReader,
  store: StoreField,
  nullIsValue: boolean,
): FieldReader {
  const reader = nullIsValue ? nullValueReader(readValue) : readValue;
  return {
    field,
    nullIsValue,
    read(context, fields) {
      const value = reader(context);
      if (value !== absent) store(fields, value);
    },
  };
}

function createMessageFieldReader(field: MessageTypedField, store: StoreField): FieldReader {
  const readLocal = createLocalReader(field);
  const plain = !hasCustomJsonRepresentation(field.message);
  return {
    field,
    nullIsValue: isValueMessage(field),
    read(context, fields, forbidden) {
      const before = context.unknown.length;
      // Only a message of fields has fields to forbid; where one of a special form is bound, it is bound whole.
      const limited = plain && forbidden !== undefined;
      store(fields, limited ? context.messages.readFields(context, field.message, forbidden) : readLocal(context));
      locateUnknown(context, before, field.name);
    },
  };
}

// The value of a message-typed field in the form in which protobuf-es keeps it.
function createLocalReader(field: MessageTypedField): ValueReader {
  const form = localFormOf(field);
  if (form === "json-object") return readJsonObject;
  if (form === "unwrapped" && isWrapperDesc(field.message)) {
    const inner = field.message.fields[0];
    return createScalarReader(inner.scalar, inner.longAsString);
  }
  const { message } = field;
  return (context) => context.messages.readerOf(message)(context);
}

function createElementReader(field: ListField | MapField): ValueReader {
  if (field.message !== undefined) {
    const readLocal = createLocalReader(field);
    return isValueMessage(field) ? readLocal : refusingNull(readLocal);
  }
  if (field.enum !== undefined) {
    const readEnum = createEnumReader(field.enum);
    return isNullValueEnum(field) ? nullValueReader(readEnum) : refusingNull(readEnum);
  }
  const longAsString = field.fieldKind === "list" && field.longAsString;
  return refusingNull(createScalarReader(field.scalar, longAsString));
}

function createListReader(field: ListField): FieldReader["read"] {
  const readElement = createElementReader(field);
  return (context, fields) => {
    const { scanner, unknown } = context;
    if (scanner.peek() !== "array") throw new FieldProblem("not an array");
    const items = listOf(fields[field.localName]);
    let index = 0;
    scanner.openArray();
    for (let more = scanner.firstItem(); more; more = scanner.nextItem()) {
      const before = unknown.length;
      const value = readLocated(context, readElement, index);
      locateUnknown(context, before, `${field.name}[${index}]`);
      if (value !== absent) items.push(value);
      index++;
    }
  };
}

function createMapReader(field: MapField): FieldReader["read"] {
  const readElement = createElementReader(field);
  return (context, fields) => {
    const { scanner, unknown } = context;
    if (scanner.peek() !== "object") throw new FieldProblem("not an object");
    const entries = fieldsOf(fields[field.localName]);
    const seen = new Set<string>();
    scanner.openObject();
    for (let key = scanner.firstKey(); key !== undefined; key = scanner.nextKey()) {
      if (!isMapKey(key, field.mapKey)) throw new FieldProblem(`${quote(key)} is no key of this map`);
      if (seen.has(key)) throw new FieldProblem(`key ${quote(key)} is set more than once`);
      seen.add(key);
      const before = unknown.length;
      const value = readLocated(context, readElement, key);
      locateUnknown(context, before, `${field.name}[${quote(key)}]`);
      if (value !== absent) setOwn(entries, key, value);
    }
  };
}

// Integer keys are taken in their canonical spelling only, so that "1" and "01" cannot be two entries of one key.
function isMapKey(key: string, type: ScalarType): boolean {
  const range = integerRangeOf(type);
  if (range !== undefined) return parseCanonicalInteger(key, range) !== undefined;
  return type !== ScalarType.BOOL || key === "true" || key === "false";
}

function listOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("not a list");
}

function readLocated(context: ReadContext, read: ValueReader, key: string | number): unknown {
  try {
    return read(context);
  } catch (error) {
    throw error instanceof FieldProblem ? error.insideItem(key) : error;
  }
}

function refusingNull(read: ValueReader): ValueReader {
  return (context) => {
    if (context.scanner.peek() === "null") throw new FieldProblem("null is no element");
    return read(context);
  };
}

// google.protobuf.NullValue is the one enum whose value is spelled null.
function nullValueReader(read: ValueReader): ValueReader {
  return (context) => {
    if (context.scanner.peek() !== "null") return read(context);
    context.scanner.readLiteral("null");
    return 0;
  };
}

function isNullValueEnum(field: DescField): boolean {
  return field.enum?.typeName === "google.protobuf.NullValue";
}

function isValueMessage(field: DescField): boolean {
  return field.message?.typeName === "google.protobuf.Value";
}
