import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { fromJson } from "@bufbuild/protobuf";
import { ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { readAny } from "./any-reader.ts";
import { FieldProblem, quote } from "./field-problem.ts";
import { setOwn } from "./field-values.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { ValueReader } from "./read-context.ts";
import { messageForm, parseText, type TextForm } from "./text-forms.ts";

// protobuf-es needs no recursion limit, because the scanner already limits nesting.
const boundedByScanner = { recursionLimit: Number.POSITIVE_INFINITY };

/** Creates the reader for a well-known type with its own JSON form. Returns `undefined` for every other type. */
export function createWellKnownReader(desc: DescMessage): ValueReader | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Any":
      return readAny;
    case "google.protobuf.Struct":
      return (context) => fromJson(StructSchema, readJsonObject(context), boundedByScanner);
    case "google.protobuf.Value":
      return ({ scanner }) => fromJson(ValueSchema, readPlainValue(scanner), boundedByScanner);
    case "google.protobuf.ListValue":
      return ({ scanner }) => fromJson(ListValueSchema, readPlainArray(scanner), boundedByScanner);
    default: {
      const form = messageForm(desc, false);
      return form && createTextReader(form);
    }
  }
}

/** Creates the reader for values that are written as text. */
export function createTextReader(form: TextForm): ValueReader {
  return ({ scanner, canonicalIntegers }) => {
    const kind = scanner.peek();
    if (!form.kinds.includes(kind)) throw new FieldProblem(`must be ${form.noun}`);
    return parseText(scanner.readText(), form, canonicalIntegers);
  };
}

/** Reads a JSON object into the plain object that protobuf-es stores in google.protobuf.Struct fields. */
export const readJsonObject: ValueReader<JsonObject> = ({ scanner }) => {
  if (scanner.peek() !== "object") throw new FieldProblem("must be an object");
  return readPlainObject(scanner);
};

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

// Reads a number for a google.protobuf.Value. A number beyond a double's range is refused.
function readDouble(scanner: JsonScanner): number {
  const text = scanner.readNumber();
  if (Number.isFinite(Number(text))) return Number(text);
  throw new FieldProblem(`${quote(text)} is not a double`);
}
