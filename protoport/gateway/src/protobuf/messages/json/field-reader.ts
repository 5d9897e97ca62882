import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "./custom-form.ts";
import { FieldProblem, quoteValue } from "./field-problem.ts";
import { asFieldValues, createFieldSetter, loadField, localFormOf, setOwn } from "./field-values.ts";
import { enumNumberByName } from "./names.ts";
import { int32, parseExactInteger } from "./numbers.ts";
import { absentValue, type FieldReader, type ValueReader } from "./read-context.ts";
import { bareWrapperForm, enumNumber, isMapKey, scalarTextForm } from "./text-forms.ts";
import { createTextReader, readJsonObject } from "./well-known-readers.ts";

type ListField = DescField & { readonly fieldKind: "list" };
type MapField = DescField & { readonly fieldKind: "map" };
type MessageTypedField = DescField & { readonly message: DescMessage };

/** Creates a field's reader. */
export function createFieldReader(field: DescField): FieldReader {
  if (field.fieldKind === "list") return { field, nullIsValue: false, read: createListReader(field) };
  if (field.fieldKind === "map") return { field, nullIsValue: false, read: createMapReader(field) };
  const setField = createFieldSetter(field);
  const readValue = createValueReader(field);
  const isPlainMessage = field.message !== undefined && !hasCustomJsonRepresentation(field.message);
  return {
    field,
    nullIsValue: acceptsNull(field),
    read(context, fields, bound) {
      // The URL path can set single fields in a plain message. The path can set a well-known type only completely.
      const value =
        bound !== undefined && isPlainMessage
          ? context.messages.readFields(context, field.message, { bound, into: loadField(fields, field) })
          : readValue(context);
      if (value !== absentValue) setField(fields, value);
      return value;
    },
  };
}

// Creates the reader for a field's value, or for one element of a list or map.
function createValueReader(field: DescField): ValueReader {
  if (field.message !== undefined) return createLocalReader(field);
  if (field.enum !== undefined) return createEnumReader(field.enum);
  const longAsString = field.fieldKind !== "map" && field.longAsString;
  return createTextReader(scalarTextForm(field.scalar, longAsString));
}

function createLocalReader(field: MessageTypedField): ValueReader {
  const { message } = field;
  const form = localFormOf(field);
  if (form === "json-object") return readJsonObject;
  const unwrappedForm = form === "unwrapped" ? bareWrapperForm(message) : undefined;
  return unwrappedForm === undefined
    ? (context) => context.messages.readerOf(message)(context)
    : createTextReader(unwrappedForm);
}

// Creates the reader for an enum's names, and for the numbers that the enum may hold.
function createEnumReader(desc: DescEnum): ValueReader {
  const noun = `a value of enum ${desc.typeName}`;
  return ({ scanner, rejectUnknown, unknownOption, unknown, path }) => {
    const kind = scanner.peek();
    if (kind === "string") {
      const name = scanner.readString();
      const namedNumber = enumNumberByName(desc, name);
      if (namedNumber !== undefined) return namedNumber;
      if (rejectUnknown) throw new FieldProblem(`${quoteValue(name)} is not ${noun}`, unknownOption);
      // In the JSON mapping, a reader that ignores unknown fields also ignores unknown enum names.
      unknown.addEnumValue(name, path);
      return absentValue;
    }
    if (kind === "null" && isNullValue(desc)) {
      scanner.readLiteral("null");
      return 0;
    }
    if (kind !== "number") throw new FieldProblem(`must be the name or number of ${noun}`);
    const text = scanner.readNumber();
    const value = enumNumber(desc, parseExactInteger(text, int32));
    if (value === undefined) throw new FieldProblem(`${quoteValue(text)} is not ${noun}`);
    return value;
  };
}

function createElementReader(field: ListField | MapField): ValueReader {
  const read = createValueReader(field);
  if (acceptsNull(field)) return read;
  return (context) => {
    if (context.scanner.peek() === "null") throw new FieldProblem("must not be null in an array or a map");
    return read(context);
  };
}

function createListReader(field: ListField): FieldReader["read"] {
  const readElement = createElementReader(field);
  return (context, fields) => {
    const { scanner, path } = context;
    if (scanner.peek() !== "array") throw new FieldProblem("must be an array");
    const items = listOf(fields[field.localName]);
    let index = 0;
    scanner.readArray(() => {
      path.push(index++);
      const value = readElement(context);
      path.pop();
      if (value !== absentValue) items.push(value);
    });
    return items;
  };
}

function createMapReader(field: MapField): FieldReader["read"] {
  const readElement = createElementReader(field);
  return (context, fields) => {
    const { scanner, path } = context;
    if (scanner.peek() !== "object") throw new FieldProblem("must be an object");
    const entries = asFieldValues(fields[field.localName]);
    scanner.readObject((key) => {
      if (!isMapKey(key, field.mapKey)) throw new FieldProblem(`${quoteValue(key)} is not a valid key of this map`);
      path.push(key);
      const value = readElement(context);
      path.pop();
      if (value !== absentValue) setOwn(entries, key, value);
    });
    return entries;
  };
}

function listOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("expected an array");
}

/** Returns whether JSON `null` is a value for this field. For other fields, `null` means that the field is not set. */
export function acceptsNull({ message, enum: enumeration }: DescField): boolean {
  return message?.typeName === "google.protobuf.Value" || (enumeration !== undefined && isNullValue(enumeration));
}

// google.protobuf.NullValue is the only enum whose value is written as null.
function isNullValue({ typeName }: DescEnum): boolean {
  return typeName === "google.protobuf.NullValue";
}
