import type { DescMessage, JsonObject, JsonValue, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { Struct, Value } from "@bufbuild/protobuf/wkt";
import { isWrapperDesc, ListValueSchema, NullValue, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { readAny } from "./any-reader.ts";
import { parseFieldMask } from "./field-mask.ts";
import { createFieldSetter, setOwn } from "./field-values.ts";
import { parseFloatText } from "./floats.ts";
import { FieldProblem, parseText } from "./field-problem.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { ValueReader } from "./read-context.ts";
import { createScalarReader } from "./scalar-readers.ts";
import { parseDuration, parseTimestamp } from "./times.ts";

/** Creates the reader of a well-known type with its own JSON form; `undefined` for every other type. */
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
      return (context) => toStruct(readJsonObject(context));
    case "google.protobuf.Value":
      return ({ scanner }) => toValue(readPlainValue(scanner));
    case "google.protobuf.ListValue":
      return ({ scanner }) => create(ListValueSchema, { values: readPlainArray(scanner).map(toValue) });
    default:
      return isWrapperDesc(desc) ? createWrapperReader(desc) : undefined;
  }
}

/** Reads a JSON object into the plain object that protobuf-es stores in fields of type google.protobuf.Struct. */
export const readJsonObject: ValueReader<JsonObject> = ({ scanner }) => {
  if (scanner.peek() !== "object") throw new FieldProblem("not an object");
  return readPlainObject(scanner);
};

function createTextReader(what: string, parse: (text: string) => Message | undefined): ValueReader {
  return ({ scanner }) => {
    if (scanner.peek() !== "string") throw new FieldProblem(`not ${what}`);
    return parseText(scanner.readString(), what, parse);
  };
}

function createWrapperReader(desc: DescMessage): ValueReader {
  const [field] = desc.fields;
  if (field?.fieldKind !== "scalar") return () => create(desc);
  const readInner = createScalarReader(field.scalar, field.longAsString);
  const store = createFieldSetter(field);
  return (context) => {
    const message = create(desc);
    store(message, readInner(context));
    return message;
  };
}

function readPlainValue(scanner: JsonScanner): JsonValue {
  const kind = scanner.peek();
  switch (kind) {
    case "object":
      return readPlainObject(scanner);
    case "array":
      return readPlainArray(scanner);
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
  scanner.readObject((key) => setOwn(target, key, readPlainValue(scanner)));
  return target;
}

function readPlainArray(scanner: JsonScanner): JsonValue[] {
  const items: JsonValue[] = [];
  scanner.readArray(() => items.push(readPlainValue(scanner)));
  return items;
}

function toStruct(json: JsonObject): Struct {
  const struct = create(StructSchema);
  for (const [key, value] of Object.entries(json)) setOwn(struct.fields, key, toValue(value));
  return struct;
}

function toValue(json: JsonValue): Value {
  return create(ValueSchema, { kind: toKind(json) });
}

function toKind(json: JsonValue): Value["kind"] {
  if (json === null) return { case: "nullValue", value: NullValue.NULL_VALUE };
  if (Array.isArray(json)) return { case: "listValue", value: create(ListValueSchema, { values: json.map(toValue) }) };
  switch (typeof json) {
    case "string":
      return { case: "stringValue", value: json };
    case "number":
      return { case: "numberValue", value: json };
    case "boolean":
      return { case: "boolValue", value: json };
    default:
      return { case: "structValue", value: toStruct(json) };
  }
}

// google.protobuf.Value holds a double, so a number beyond its range is refused.
function readDouble(scanner: JsonScanner): number {
  return parseText(scanner.readNumber(), "a double", parseDouble);
}

function parseDouble(text: string): number | undefined {
  return parseFloatText(text, false);
}
