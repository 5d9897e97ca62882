import {
  create,
  type DescExtension,
  type DescField,
  type DescMessage,
  equals,
  isMessage,
  type Message,
  type MessageShape,
  setExtension,
} from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { NamedOption } from "../../../http/index.ts";
import { problem } from "../../call-errors.ts";
import { memoize } from "../codegen.ts";
import { FieldProblem, type PathStep, printPath, quoteValue, UnknownNames } from "./field-problem.ts";
import { createFieldReader } from "./field-reader.ts";
import { createFieldSetter, type FieldValues, loadField, refuseOtherMember } from "./field-values.ts";
import { JsonScanner } from "./json-scanner.ts";
import { findField } from "./names.ts";
import type {
  BoundFields,
  FieldReader,
  MessageReaders,
  ReadContext,
  ReadFieldsOptions,
  ValueReader,
} from "./read-context.ts";
import type { ReadServiceJsonOptions } from "./read-options.ts";
import { requireFieldsRead } from "./required-fields.ts";
import { createWellKnownReader } from "./well-known-readers.ts";

/** Rules for reading one JSON text, in addition to the options. */
export type TextRules = Pick<ReadContext, "sameAsBound" | "notes">;

/** Reads a JSON text with the exact reader. @throws ConnectError `InvalidArgument` whose message names the field */
export function readExactText<Value>(
  text: string,
  options: ReadServiceJsonOptions,
  rules: TextRules,
  readExactly: (context: ReadContext) => Value,
): { readonly message: Value; readonly ignored: UnknownNames } {
  const { unknownOption = "rest.json.unknownFields" } = options;
  const rejectUnknown = options.unknownFields !== "ignore";
  const unknown = new UnknownNames();
  const path: PathStep[] = [];
  try {
    const context: ReadContext = {
      ...rules,
      scanner: new JsonScanner(text),
      rejectUnknown,
      unknownOption,
      canonicalIntegers: options.canonicalIntegers === true,
      registry: options.registry,
      unknown,
      path,
      messages: messageReaders,
      anyDepth: 0,
      typeUrls: undefined,
    };
    const message = readExactly(context);
    context.scanner.finish();
    if (rejectUnknown && unknown.count > 0) throw new FieldProblem(unknown.describe("field"), unknownOption);
    return { message, ignored: unknown };
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    const location = path.length === 0 ? "" : `${printPath(path)}: `;
    throw invalidMessageError(location + error.message, error.option);
  }
}

/** Reads a field. @param below - the inner fields that the URL path sets, or `"whole"` for the complete field */
export function readExactField(
  reader: FieldReader,
  below: BoundFields | "whole" | undefined,
  context: ReadContext,
  message: Message,
): void {
  context.path.push(reader.field);
  if (!reader.nullIsValue && context.scanner.peek() === "null") context.scanner.readLiteral("null");
  else {
    refuseOtherMember(message, reader.field);
    reader.read(context, message, below === "whole" ? undefined : below);
  }
  context.path.pop();
}

/**
 * Reads a message, or one field if the complete text is the field's value. Required fields may be missing. Generates
 * no code, and does not check whether code may be generated, because a Content-Security-Policy would report the check.
 *
 * @throws ConnectError `InvalidArgument` whose message names the field
 */
export function readJsonExactly<Desc extends DescMessage>(
  desc: Desc,
  field: DescField | undefined,
  json: Uint8Array | string,
  options: ReadServiceJsonOptions,
): MessageShape<Desc> {
  const read = (context: ReadContext): MessageShape<Desc> => {
    const whole = field === undefined ? messageReaders.readerOf(desc)(context) : undefined;
    if (isMessage(whole, desc)) return whole;
    if (field === undefined) throw new TypeError(`the reader of ${desc.typeName} returned another type`);
    const message = create(desc);
    readExactField(createFieldReader(field), undefined, context, message);
    return message;
  };
  return readExactText(toText(json), options, { sameAsBound: false, notes: undefined }, read).message;
}

const exactUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** node's Buffer, if it exists. Buffer decodes characters such as "ü" in half the time of a TextDecoder. */
const NodeBuffer: typeof Buffer | undefined = globalThis.Buffer;

/** Decodes JSON. @throws ConnectError `InvalidArgument` for bytes that are not UTF-8, and for lone surrogates */
export function toText(json: Uint8Array | string): string {
  if (typeof json === "string") {
    if (json.isWellFormed()) return json;
    throw invalidMessageError("not valid JSON: lone surrogate in the text");
  }
  try {
    if (NodeBuffer !== undefined && json instanceof NodeBuffer) {
      const text = json.toString();
      // Buffer replaces invalid bytes with U+FFFD.
      if (!text.includes("\ufffd")) return text;
    }
    return exactUtf8.decode(json);
  } catch {
    throw invalidMessageError("not valid JSON: the bytes are not UTF-8");
  }
}

function invalidMessageError(message: string, option?: NamedOption): Error {
  return problem("ERR_MESSAGE_INVALID", message, { option });
}

const fieldReaderOf = memoize(createFieldReader);

/** The readers for all message types. A reader is created on first use, because a message type may contain itself. */
const messageReaders: MessageReaders = {
  readerOf: memoize(
    (desc: DescMessage): ValueReader => createWellKnownReader(desc) ?? ((context) => readFields(context, desc)),
  ),
  readFields,
};

function readFields<Desc extends DescMessage>(
  context: ReadContext,
  desc: Desc,
  { bound, into, ignoredKey }: ReadFieldsOptions = {},
): MessageShape<Desc> {
  const { scanner, unknown, path } = context;
  const message = isMessage(into, desc) ? into : create(desc);
  const seen = new Set<DescField | string>();
  scanner.openObject();
  for (let key = scanner.firstKey(); key !== undefined; key = scanner.nextKey()) {
    const knownField = key === ignoredKey ? undefined : findField(desc, key);
    const reader = knownField === undefined ? findExtensionReader(context, desc, key) : fieldReaderOf(knownField);
    if (reader !== undefined) {
      path.push(reader.field);
      if (seen.has(reader.field)) throw new FieldProblem("is set more than once");
      seen.add(reader.field);
      readField(context, reader, message, bound?.get(reader.field));
      path.pop();
      continue;
    }
    if (seen.has(key)) throw new FieldProblem(`key ${quoteValue(key)} is set more than once`);
    seen.add(key);
    if (key !== ignoredKey) unknown.addField(key, path);
    scanner.skipValue();
  }
  return message;
}

/** @param bound - the inner fields that the URL path sets, or `"whole"` for the complete field */
function readField(
  context: ReadContext,
  reader: FieldReader,
  fields: FieldValues,
  bound: BoundFields | "whole" | undefined,
): void {
  const { scanner, notes, unknown } = context;
  if (bound === "whole") return readBoundField(context, reader, fields);
  if (!reader.nullIsValue && scanner.peek() === "null") {
    scanner.readLiteral("null");
    if (notes !== undefined) noteField(context, notes.paths);
    return;
  }
  refuseOtherMember(fields, reader.field);
  const notedBefore = notes?.paths.length;
  const ignoredBefore = notes && notes.repeated + unknown.count;
  const value = reader.read(context, fields, bound);
  // Only the inner fields are noted if there are any. A message with only ignored values is not noted.
  if (notes === undefined || notes.paths.length !== notedBefore) return;
  const isComplete = notes.repeated + unknown.count === ignoredBefore;
  if (isComplete || isFilledLeaf(value)) noteField(context, notes.paths);
}

/** Returns whether a value is a google.protobuf.Any, or a list or map that is not empty. */
function isFilledLeaf(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return isMessage(value) ? isMessage(value, AnySchema) : Object.keys(value).length > 0;
}

function readBoundField(context: ReadContext, reader: FieldReader, fields: FieldValues): void {
  const { field } = reader;
  const { scanner, path, unknown, notes } = context;
  if (context.sameAsBound) {
    if (notes !== undefined) notes.repeated++;
    // null means that the field is not set, so null does not conflict with the URL path.
    if (scanner.peek() === "null") return scanner.readLiteral("null");
    const secondMessage = create(field.parent);
    reader.read(context, secondMessage, undefined);
    refuseOtherValue(field, secondMessage, fields);
    return;
  }
  const option = context.sameAsBound === undefined ? "lenient" : "sameValueAsPath or lenient";
  if (context.rejectUnknown) throw new FieldProblem("is already set by the path", option);
  unknown.addField(field.name, path.slice(0, -1));
  scanner.skipValue();
}

function refuseOtherValue(field: DescField, repeated: MessageShape<DescMessage>, fields: FieldValues): void {
  const fromPath = loadField(fields, field);
  // NaN does not equal itself.
  if (Number.isNaN(fromPath) && Number.isNaN(loadField(repeated, field))) return;
  const expected = create(field.parent);
  createFieldSetter(field)(expected, fromPath);
  if (!equals(field.parent, repeated, expected)) throw new FieldProblem("must be the value in the path");
}

// Maximum paths that are noted for a request body. Each path can be as long as the maximum nesting depth.
const maxNotedFields = 1000;

function noteField({ path, anyDepth }: ReadContext, paths: string[]): void {
  if (anyDepth > 0 || !path.every((step) => typeof step === "object")) return;
  if (paths.length === maxNotedFields) throw new FieldProblem(`the update mask has more than ${maxNotedFields} fields`);
  paths.push(printPath(path));
}

const readerOf = memoize(createExtensionReader);

/** Finds the reader for a key such as `[package.name]`, if the registry has this extension of the message. */
function findExtensionReader(context: ReadContext, desc: DescMessage, key: string): FieldReader | undefined {
  const { registry } = context;
  if (registry === undefined || !key.startsWith("[") || !key.endsWith("]")) return undefined;
  const extension = registry.getExtension(key.slice(1, -1));
  if (extension?.extendee.typeName !== desc.typeName) return undefined;
  return readerOf(extension);
}

// Creates the reader for an extension. protobuf-es stores extensions as unknown fields, so the value is first read into
// a message without other fields.
function createExtensionReader(extension: DescExtension): FieldReader {
  const { extendee, jsonName } = extension;
  const fieldMembers = { kind: "field", parent: extendee, name: jsonName, localName: "value", oneof: undefined };
  const field = { ...extension, ...fieldMembers };
  if (!isField(field)) throw new TypeError(`extension ${extension.typeName} is not a field`);
  const singleFieldMessage: DescMessage = { ...extendee, fields: [field], members: [field], oneofs: [] };
  const reader = createFieldReader(field);
  return {
    field,
    nullIsValue: reader.nullIsValue,
    read(context, fields) {
      const values: FieldValues = create(singleFieldMessage);
      reader.read(context, values, undefined);
      // setExtension() writes the value in binary, which fails if required fields are missing.
      if (extension.message !== undefined) requireFieldsRead(context, extension.message, values["value"]);
      // The value is missing if the text has an unknown enum name, which is ignored.
      if (Object.hasOwn(values, "value") && isMessage(fields)) setExtension(fields, extension, values["value"]);
      return values["value"];
    },
  };
}

// A type guard, because TypeScript does not accept a `DescExtension` with a scalar type as a `DescField`.
function isField(desc: { readonly kind: string }): desc is DescField {
  return desc.kind === "field";
}
