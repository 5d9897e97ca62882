import type { DescField, DescMessage, DescOneof, MessageShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { findExtensionReader } from "./extension-reader.ts";
import { createFieldReader } from "./field-reader.ts";
import type { FieldValues } from "./field-values.ts";
import { FieldProblem, printPath, quote } from "./field-problem.ts";
import type { FieldReader, BoundFields, MessageReaders, ReadContext, ValueReader } from "./read-context.ts";
import { createWellKnownReader } from "./well-known-readers.ts";

/** The readers of a message's fields, by JSON name and by proto name. */
type FieldsByName = ReadonlyMap<string, FieldReader>;

const fieldsByMessage = new WeakMap<DescMessage, FieldsByName>();
const readers = new WeakMap<DescMessage, ValueReader>();

/** The readers of all message types, each created on first use, because a message type may contain itself. */
export const messageReaders: MessageReaders = { readerOf, readFields };

function readerOf(desc: DescMessage): ValueReader {
  let reader = readers.get(desc);
  if (reader === undefined) {
    reader = createWellKnownReader(desc) ?? ((context) => readFields(context, desc));
    readers.set(desc, reader);
  }
  return reader;
}

function readFields<Desc extends DescMessage>(
  context: ReadContext,
  desc: Desc,
  bound?: BoundFields,
  ignoredKey?: string,
): MessageShape<Desc> {
  const { scanner, unknown, path } = context;
  const fieldsByName = fieldsByNameOf(desc);
  const message = create(desc);
  const seen = new FieldsSeen();
  scanner.openObject();
  for (let key = scanner.firstKey(); key !== undefined; key = scanner.nextKey()) {
    const reader = fieldsByName.get(key) ?? findExtensionReader(context, desc, key);
    if (reader !== undefined) {
      path.push(reader.field);
      readField(context, reader, message, seen, bound);
      path.pop();
      continue;
    }
    seen.addUnknown(key);
    if (key !== ignoredKey) unknown.addField(key, path);
    scanner.skipValue();
  }
  return message;
}

function readField(
  context: ReadContext,
  reader: FieldReader,
  fields: FieldValues,
  seen: FieldsSeen,
  bound: BoundFields | undefined,
): void {
  const { field } = reader;
  const { scanner, notes } = context;
  seen.addField(field);
  const below = bound?.get(field);
  if (below === "whole") return readBoundField(context, reader);
  if (!reader.nullIsValue && scanner.peek() === "null") {
    scanner.readLiteral("null");
    if (notes?.fieldPaths !== undefined) noteFieldPath(context, notes.fieldPaths);
    return;
  }
  seen.addOneofMember(field);
  if (notes?.fieldPaths === undefined) reader.read(context, fields, below);
  else readNotedField(context, reader, fields, below, notes.fieldPaths);
}

function readBoundField(context: ReadContext, reader: FieldReader): void {
  const { field } = reader;
  const { scanner, path, unknown, notes } = context;
  if (notes?.boundValues !== undefined) {
    // Here too, null means that the field is not set.
    if (scanner.peek() === "null") return scanner.readLiteral("null");
    const message = create(field.parent);
    reader.read(context, message, undefined);
    notes.boundValues.push({ path: [...path], message });
    return;
  }
  if (context.rejectUnknown) throw new FieldProblem("is bound by the path");
  unknown.addField(field.name, path.slice(0, -1));
  scanner.skipValue();
}

// Notes the fields inside this one, or if there are none the field itself. A field is not noted when part of its value
// was ignored, because then it is not set to what the client meant.
function readNotedField(
  context: ReadContext,
  reader: FieldReader,
  fields: FieldValues,
  bound: BoundFields | undefined,
  fieldPaths: string[],
): void {
  const before = fieldPaths.length;
  const ignoredBefore = context.unknown.count;
  const boundBefore = context.notes?.boundValues?.length;
  reader.read(context, fields, bound);
  const untouched = context.unknown.count === ignoredBefore && context.notes?.boundValues?.length === boundBefore;
  if (fieldPaths.length === before && untouched) noteFieldPath(context, fieldPaths);
}

function noteFieldPath({ path, anyDepth }: ReadContext, fieldPaths: string[]): void {
  if (anyDepth > 0 || !path.every((step) => typeof step === "object")) return;
  if (fieldPaths.length === fieldPathsMax)
    throw new FieldProblem(`more than ${fieldPathsMax} fields for an update mask`);
  fieldPaths.push(printPath(path));
}

// Limits how many paths one body can produce, because each can be as long as messages are deep.
const fieldPathsMax = 1000;

function fieldsByNameOf(desc: DescMessage): FieldsByName {
  let fieldsByName = fieldsByMessage.get(desc);
  if (fieldsByName === undefined) {
    const fields = desc.fields.map(createFieldReader);
    // If the JSON name of one field is the proto name of another, it means the latter.
    fieldsByName = new Map([
      ...fields.map((reader): [string, FieldReader] => [reader.field.jsonName, reader]),
      ...fields.map((reader): [string, FieldReader] => [reader.field.name, reader]),
    ]);
    fieldsByMessage.set(desc, fieldsByName);
  }
  return fieldsByName;
}

/** The fields that one JSON object has set so far. Nothing may be set twice, by whatever name. */
class FieldsSeen {
  readonly #seen = new Set<DescField | string>();
  #oneofs: Map<DescOneof, DescField> | undefined;

  addField(field: DescField): void {
    if (this.#seen.has(field)) throw new FieldProblem("is set more than once");
    this.#seen.add(field);
  }

  addUnknown(key: string): void {
    if (this.#seen.has(key)) throw new FieldProblem(`key ${quote(key)} is set more than once`);
    this.#seen.add(key);
  }

  addOneofMember(field: DescField): void {
    if (field.oneof === undefined) return;
    this.#oneofs ??= new Map();
    const other = this.#oneofs.get(field.oneof);
    if (other !== undefined) throw new FieldProblem(`cannot be set together with ${other.name}`);
    this.#oneofs.set(field.oneof, field);
  }
}
