import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { createFieldReader } from "./field-reader.ts";
import type { Fields } from "./field-store.ts";
import { fieldsOf } from "./field-store.ts";
import { FieldProblem, quote } from "./field-problem.ts";
import type { FieldReader, ForbiddenFields, MessageReaders, ReadContext, ValueReader } from "./read-context.ts";
import { createWellKnownReader } from "./well-known-readers.ts";

/** The readers of a message's fields, by JSON name and by proto name. */
type FieldsByName = ReadonlyMap<string, FieldReader>;

const shapes = new WeakMap<DescMessage, FieldsByName>();
const readers = new WeakMap<DescMessage, ValueReader>();

/** The readers of every message type; each is made on first use, since message types may contain themselves. */
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
  forbidden?: ForbiddenFields,
  ignoredKey?: string,
): MessageShape<Desc> {
  const { scanner, unknown } = context;
  const shape = shapeOf(desc);
  const message = create(desc);
  const fields = fieldsOf(message);
  const seen = new FieldsSeen();
  scanner.openObject();
  for (let key = scanner.firstKey(); key !== undefined; key = scanner.nextKey()) {
    const reader = shape.get(key);
    if (reader !== undefined) {
      readField(context, reader, fields, seen, forbidden);
      continue;
    }
    seen.addUnknown(key);
    if (key !== ignoredKey) unknown.push(key);
    scanner.skipValue();
  }
  return message;
}

function readField(
  context: ReadContext,
  reader: FieldReader,
  fields: Fields,
  seen: FieldsSeen,
  forbidden: ForbiddenFields | undefined,
): void {
  const { field } = reader;
  try {
    seen.addField(field);
    const ban = forbidden?.get(field);
    if (ban === true) {
      if (context.rejectUnknown) throw new FieldProblem("is bound by the path");
      context.unknown.push(field.name);
      context.scanner.skipValue();
      return;
    }
    if (!reader.nullIsValue && context.scanner.peek() === "null") {
      context.scanner.readLiteral("null");
      return;
    }
    seen.addOneofMember(field);
    reader.read(context, fields, ban);
  } catch (error) {
    throw error instanceof FieldProblem ? error.insideField(field.name) : error;
  }
}

function shapeOf(desc: DescMessage): FieldsByName {
  let shape = shapes.get(desc);
  if (shape === undefined) {
    const fields = desc.fields.map(createFieldReader);
    // Where the JSON name of one field is the proto name of another, the proto name has it.
    shape = new Map([
      ...fields.map((reader): [string, FieldReader] => [reader.field.jsonName, reader]),
      ...fields.map((reader): [string, FieldReader] => [reader.field.name, reader]),
    ]);
    shapes.set(desc, shape);
  }
  return shape;
}

/** What one JSON object has set so far: nothing may be there twice, under whatever name. */
class FieldsSeen {
  // Most objects have one or two fields of few: an array is cheaper than a Set until it is long.
  #fields: DescField[] | Set<DescField> = [];
  #unknown: Set<string> | undefined;
  #oneofs: Map<unknown, DescField> | undefined;

  addField(field: DescField): void {
    const seen = this.#fields;
    if (Array.isArray(seen)) {
      if (seen.includes(field)) throw new FieldProblem("is set more than once");
      seen.push(field);
      if (seen.length > arrayLengthMax) this.#fields = new Set(seen);
    } else {
      if (seen.has(field)) throw new FieldProblem("is set more than once");
      seen.add(field);
    }
  }

  addUnknown(key: string): void {
    this.#unknown ??= new Set();
    if (this.#unknown.has(key)) throw new FieldProblem(`key ${quote(key)} is set more than once`);
    this.#unknown.add(key);
  }

  addOneofMember(field: DescField): void {
    if (field.oneof === undefined) return;
    this.#oneofs ??= new Map();
    const other = this.#oneofs.get(field.oneof);
    if (other !== undefined) throw new FieldProblem(`cannot be set together with ${other.name}`);
    this.#oneofs.set(field.oneof, field);
  }
}

const arrayLengthMax = 8;
