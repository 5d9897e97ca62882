import {
  create,
  type DescMessage,
  fromJson,
  isMessage,
  type JsonObject,
  type JsonValue,
  toBinary,
} from "@bufbuild/protobuf";
import { type Any, AnySchema, EmptySchema, ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { hasCustomJsonRepresentation } from "./custom-form.ts";
import { FieldProblem, quoteValue } from "./field-problem.ts";
import { setOwn } from "./field-values.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { ReadContext, ValueReader } from "./read-context.ts";
import { requireFieldsRead } from "./required-fields.ts";
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
  throw new FieldProblem(`${quoteValue(text)} is not a double`);
}

// Maximum nesting of Anys. Each enclosing Any encodes the content again, so the limit keeps the time linear.
const maxNestedAnys = 8;

/** Reads a google.protobuf.Any, an object with `@type` and the fields of this type. `{}` is an empty Any. */
function readAny(context: ReadContext): Any {
  const { scanner } = context;
  if (scanner.peek() !== "object") throw new FieldProblem("must be an object");
  const mark = scanner.mark();
  const typeUrl = context.typeUrls?.get(mark.at) ?? findTypeUrl(context);
  if (typeUrl === undefined) return create(AnySchema);
  const desc = findType(context, typeUrl);
  if (++context.anyDepth > maxNestedAnys)
    throw new FieldProblem(`google.protobuf.Any is nested more than ${maxNestedAnys} levels deep`);
  scanner.rewind(mark);
  const message = readPacked(context, desc);
  context.anyDepth--;
  // toBinary() throws for messages that lack required fields.
  requireFieldsRead(context, desc, message);
  if (!isMessage(message, desc)) throw new TypeError(`the reader of ${desc.typeName} returned another type`);
  return create(AnySchema, { typeUrl, value: toBinary(desc, message) });
}

function findTypeUrl(context: ReadContext): string | undefined {
  const { scanner } = context;
  scanner.openObject();
  let key = scanner.firstKey();
  if (key === undefined) return undefined;
  for (; key !== undefined; key = scanner.nextKey()) {
    if (key !== "@type") skipAndNoteTypes(scanner, (context.typeUrls ??= new Map()));
    else if (scanner.peek() === "string") return scanner.readString();
    else break;
  }
  throw new FieldProblem('"@type" is missing');
}

/**
 * Skips a value that precedes its Any's `@type`. Stores the `@type` of each Any inside the value, by the object's
 * position, so that a nested Any is skipped once instead of once per level.
 */
function skipAndNoteTypes(scanner: JsonScanner, typeUrls: Map<number, string>): void {
  const kind = scanner.peek();
  if (kind === "array") return scanner.readArray(() => skipAndNoteTypes(scanner, typeUrls));
  if (kind !== "object") return scanner.skipValue();
  const { at } = scanner;
  scanner.readObject((key) => {
    if (key === "@type" && scanner.peek() === "string") typeUrls.set(at, scanner.readString());
    else skipAndNoteTypes(scanner, typeUrls);
  });
}

function findType(context: ReadContext, typeUrl: string): DescMessage {
  const slash = typeUrl.lastIndexOf("/");
  const desc = slash < 0 ? undefined : context.registry?.getMessage(typeUrl.slice(slash + 1));
  if (desc === undefined) throw new FieldProblem(`unknown type ${quoteValue(typeUrl)}`, "jsonOptions.registry");
  return desc;
}

function readPacked(context: ReadContext, desc: DescMessage): unknown {
  // Implementations differ for an Empty in an Any. Go writes `"value": {}`, and other languages write only `@type`.
  if (desc.typeName === EmptySchema.typeName) return readWellKnownValue(context, desc) ?? create(desc);
  if (!hasCustomJsonRepresentation(desc)) return context.messages.readFields(context, desc, { ignoredKey: "@type" });
  const message = readWellKnownValue(context, desc);
  if (message === undefined) throw new FieldProblem('"value" is missing');
  return message;
}

// Reads a message whose type has its own JSON form. An Any contains this form in "value" instead of the fields. Returns
// `undefined` if "value" is missing.
function readWellKnownValue(context: ReadContext, desc: DescMessage): unknown {
  const { scanner, unknown, path } = context;
  let message: unknown;
  scanner.readObject((key) => {
    if (key === "value") {
      message = context.messages.readerOf(desc)(context);
      return;
    }
    if (key !== "@type") unknown.addField(key, path);
    scanner.skipValue();
  });
  return message;
}
