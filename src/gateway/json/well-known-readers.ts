import type { DescMessage, JsonObject, JsonValue, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { ListValue, Struct, Value } from "@bufbuild/protobuf/wkt";
import { isWrapperDesc, ListValueSchema, NullValue, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { readAny } from "./any-reader.ts";
import { parseDuration } from "./duration.ts";
import { parseFieldMask } from "./field-mask.ts";
import { createFieldStore, fieldsOf, setOwn } from "./field-store.ts";
import { parseFiniteNumber } from "./floats.ts";
import { FieldProblem, quote } from "./field-problem.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { ReadContext, ValueReader } from "./read-context.ts";
import { createScalarReader } from "./scalar-readers.ts";
import { parseTimestamp } from "./timestamp.ts";

/** The reader of a well-known type with a JSON form of its own; `undefined` for every other type. */
export function createWellKnownReader(desc: DescMessage): ValueReader | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Any":
      return readAny;
    case "google.protobuf.Timestamp":
      return createTextReader("an RFC 3339 time from year 1 to 9999", parseTimestamp);
    case "google.protobuf.Duration":
      return createTextReader('a duration such as "1.5s"', parseDuration);
    case "google.protobuf.FieldMask":
      return createTextReader("a list of lowerCamelCase field paths", (text) => parseFieldMask(text, false));
    case "google.protobuf.Struct":
      return readStruct;
    case "google.protobuf.Value":
      return readValue;
    case "google.protobuf.ListValue":
      return readListValue;
    default:
      return isWrapperDesc(desc) ? createWrapperReader(desc) : undefined;
  }
}

/** Reads a JSON object as the plain object that protobuf-es keeps in fields of type google.protobuf.Struct. */
export const readJsonObject: ValueReader<JsonObject> = ({ scanner }) => {
  if (scanner.peek() !== "object") throw new FieldProblem("not an object");
  return readPlainObject(scanner);
};

function createTextReader(what: string, parse: (text: string) => Message | undefined): ValueReader {
  return ({ scanner }) => {
    if (scanner.peek() !== "string") throw new FieldProblem(`not ${what}`);
    const text = scanner.readString();
    const value = parse(text);
    if (value === undefined) throw new FieldProblem(`${quote(text)} is not ${what}`);
    return value;
  };
}

function createWrapperReader(desc: DescMessage): ValueReader {
  const [field] = desc.fields;
  if (field?.fieldKind !== "scalar") return () => create(desc);
  const readInner = createScalarReader(field.scalar, field.longAsString);
  const store = createFieldStore(field);
  return (context) => {
    const message = create(desc);
    store(fieldsOf(message), readInner(context));
    return message;
  };
}

function readPlainValue(scanner: JsonScanner): JsonValue {
  const kind = scanner.peek();
  switch (kind) {
    case "object":
      return readPlainObject(scanner);
    case "array": {
      const items: JsonValue[] = [];
      scanner.openArray();
      for (let more = scanner.firstItem(); more; more = scanner.nextItem()) items.push(readPlainValue(scanner));
      return items;
    }
    case "string":
      return scanner.readString();
    case "number":
      return readDouble(scanner);
    default:
      scanner.readLiteral(kind);
      return kind === "null" ? null : kind === "true";
  }
}

function readPlainObject(scanner: JsonScanner): JsonObject {
  const target: JsonObject = {};
  readEntries(scanner, (key) => setOwn(target, key, readPlainValue(scanner)));
  return target;
}

const readStruct: ValueReader<Struct> = (context) => {
  const struct = create(StructSchema);
  readEntries(context.scanner, (key) => setOwn(struct.fields, key, readValue(context)));
  return struct;
};

const readListValue: ValueReader<ListValue> = (context) => {
  const { scanner } = context;
  const list = create(ListValueSchema);
  scanner.openArray();
  for (let more = scanner.firstItem(); more; more = scanner.nextItem()) list.values.push(readValue(context));
  return list;
};

function readValue(context: ReadContext): Value {
  const { scanner } = context;
  const value = create(ValueSchema);
  const kind = scanner.peek();
  switch (kind) {
    case "object":
      value.kind = { case: "structValue", value: readStruct(context) };
      break;
    case "array":
      value.kind = { case: "listValue", value: readListValue(context) };
      break;
    case "string":
      value.kind = { case: "stringValue", value: scanner.readString() };
      break;
    case "number":
      value.kind = { case: "numberValue", value: readDouble(scanner) };
      break;
    case "null":
      scanner.readLiteral("null");
      value.kind = { case: "nullValue", value: NullValue.NULL_VALUE };
      break;
    default:
      scanner.readLiteral(kind);
      value.kind = { case: "boolValue", value: kind === "true" };
  }
  return value;
}

// google.protobuf.Value holds a double and nothing wider; a number beyond its range has no value at all.
function readDouble(scanner: JsonScanner): number {
  const text = scanner.readNumber();
  const value = parseFiniteNumber(text, false);
  if (value === undefined) throw new FieldProblem(`${quote(text)} is not a double`);
  return value;
}

function readEntries(scanner: JsonScanner, readEntry: (key: string) => void): void {
  const seen = new Set<string>();
  scanner.openObject();
  for (let key = scanner.firstKey(); key !== undefined; key = scanner.nextKey()) {
    if (seen.has(key)) throw new FieldProblem(`key ${quote(key)} is set more than once`);
    seen.add(key);
    readEntry(key);
  }
}
