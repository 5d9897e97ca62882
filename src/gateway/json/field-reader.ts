import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import type { FieldSetter } from "./field-values.ts";
import { createFieldSetter, asFieldValues, localFormOf, setOwn } from "./field-values.ts";
import { integerRangeOf, parseCanonicalInteger } from "./integers.ts";
import { FieldProblem, quote } from "./field-problem.ts";
import type { FieldReader, ValueReader } from "./read-context.ts";
import { absent } from "./read-context.ts";
import { createEnumReader, createScalarReader } from "./scalar-readers.ts";
import { readJsonObject } from "./well-known-readers.ts";

type ListField = DescField & { readonly fieldKind: "list" };
type MapField = DescField & { readonly fieldKind: "map" };
type MessageTypedField = DescField & { readonly message: DescMessage };

/** Creates the reader of a field. */
export function createFieldReader(field: DescField): FieldReader {
  const store = createFieldSetter(field);
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
  store: FieldSetter,
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

function createMessageFieldReader(field: MessageTypedField, store: FieldSetter): FieldReader {
  const readLocal = createLocalReader(field);
  const plain = !hasCustomJsonRepresentation(field.message);
  return {
    field,
    nullIsValue: isValueMessage(field),
    read(context, fields, bound) {
      // The path sets a well-known type only as a whole, so fields inside are bound only in other messages.
      const limited = plain && bound !== undefined;
      store(fields, limited ? context.messages.readFields(context, field.message, bound) : readLocal(context));
    },
  };
}

// Reads the value of a message-typed field in the form in which protobuf-es stores it.
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
    const { scanner, path } = context;
    if (scanner.peek() !== "array") throw new FieldProblem("not an array");
    const items = listOf(fields[field.localName]);
    let index = 0;
    scanner.readArray(() => {
      path.push(index++);
      const value = readElement(context);
      path.pop();
      if (value !== absent) items.push(value);
    });
  };
}

function createMapReader(field: MapField): FieldReader["read"] {
  const readElement = createElementReader(field);
  return (context, fields) => {
    const { scanner, path } = context;
    if (scanner.peek() !== "object") throw new FieldProblem("not an object");
    const entries = asFieldValues(fields[field.localName]);
    scanner.readObject((key) => {
      if (!isMapKey(key, field.mapKey)) throw new FieldProblem(`${quote(key)} is not a valid key of this map`);
      path.push(key);
      const value = readElement(context);
      path.pop();
      if (value !== absent) setOwn(entries, key, value);
    });
  };
}

// Integer keys must be canonical, so that "1" and "01" cannot be two entries with the same key.
function isMapKey(key: string, type: ScalarType): boolean {
  const range = integerRangeOf(type);
  if (range !== undefined) return parseCanonicalInteger(key, range) !== undefined;
  return type !== ScalarType.BOOL || key === "true" || key === "false";
}

function listOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("not a list");
}

function refusingNull(read: ValueReader): ValueReader {
  return (context) => {
    if (context.scanner.peek() === "null") throw new FieldProblem("null cannot be in a list or a map");
    return read(context);
  };
}

// google.protobuf.NullValue is the only enum whose value is written as null.
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
