import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { create, equals, isMessage } from "@bufbuild/protobuf";
import { findExtensionReader } from "./extension-reader.ts";
import { FieldProblem, printPath, quote } from "./field-problem.ts";
import { createFieldReader } from "./field-reader.ts";
import { createFieldSetter, type FieldValues, loadField, refuseOtherMember } from "./field-values.ts";
import { findField } from "./names.ts";
import { memoize } from "../codegen/index.ts";
import type {
  BoundFields,
  FieldReader,
  MessageReaders,
  ReadContext,
  ReadFieldsOptions,
  ValueReader,
} from "./read-context.ts";
import { createWellKnownReader } from "./well-known-readers.ts";

const fieldReaderOf = memoize(createFieldReader);

/** The readers for all message types. A reader is created on first use, because a message type may contain itself. */
export const messageReaders: MessageReaders = {
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
    if (seen.has(key)) throw new FieldProblem(`key ${quote(key)} is set more than once`);
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
  reader.read(context, fields, bound);
  // Only the inner fields are noted if there are any. A field in which a value was ignored is not noted, because its
  // value differs from the client's value.
  if (notes === undefined || notes.paths.length !== notedBefore) return;
  if (notes.repeated + unknown.count !== ignoredBefore) return;
  noteField(context, notes.paths);
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
  if (context.rejectUnknown) throw setByPathProblem(context);
  unknown.addField(field.name, path.slice(0, -1));
  scanner.skipValue();
}

function setByPathProblem({ sameAsBound }: ReadContext): FieldProblem {
  const option = sameAsBound === undefined ? "lenient" : "sameValueAsPath or lenient";
  return new FieldProblem("is already set by the path", option);
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
const notedFieldsMax = 1000;

function noteField({ path, anyDepth }: ReadContext, paths: string[]): void {
  if (anyDepth > 0 || !path.every((step) => typeof step === "object")) return;
  if (paths.length === notedFieldsMax) throw new FieldProblem(`the update mask has more than ${notedFieldsMax} fields`);
  paths.push(printPath(path));
}
