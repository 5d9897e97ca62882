import type { DescMessage, Message } from "@bufbuild/protobuf";
import { isMessage, toJson } from "@bufbuild/protobuf";
import { AnySchema, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { createFieldWriter, type FieldWriter, writeField } from "./field-writer.ts";
import { asFieldValues, mayHold } from "./field-values.ts";
import { oncePer } from "./once-per.ts";
import { createWellKnownWriter } from "./well-known-writers.ts";
import type { JsonStyle, MessageWriter, MessageWriters } from "./write-context.ts";

/** Creates the writers for messages under these options. */
export function createMessageWriters(options: JsonStyle): MessageWriters {
  const writers: MessageWriters = { options, of: oncePer((desc) => createMessageWriter(desc, writers)) };
  return writers;
}

function createMessageWriter(desc: DescMessage, writers: MessageWriters): MessageWriter {
  const write = createWellKnownWriter(desc, writers);
  if (write === undefined) return createPlainWriter(desc, writers);
  return {
    write,
    writeAny: (typeUrl, message) => `${beginAny(typeUrl)},"value":${write(message)}}`,
  };
}

/** A field, and its name with what comes before it: nothing, or a comma. */
interface NamedWriter extends FieldWriter {
  readonly first: string;
  readonly next: string;
}

// Writes a type without a JSON form of its own: field by field.
function createPlainWriter(desc: DescMessage, writers: MessageWriters): MessageWriter {
  const { useProtoFieldName, registry } = writers.options;
  const named = (fields: DescMessage["fields"]): NamedWriter[] =>
    fields.map((field) => {
      const first = `${JSON.stringify(useProtoFieldName === true ? field.name : field.jsonName)}:`;
      return { first, next: `,${first}`, ...createFieldWriter(field, writers) };
    });
  // Fields by their numbers, extensions, and then what may hold a mask or an Any.
  const masked = desc.fields.filter(({ message }) => message !== undefined && mayHoldMask(message));
  const others = desc.fields.filter((field) => !masked.includes(field));
  const before = named(others.toSorted((one, other) => one.number - other.number));
  const behind = named(masked);

  const addFields = (begun: string, message: Message): string => {
    let text = addNamed(begun, before, message);
    if (registry !== undefined && message.$unknown !== undefined) text = addExtensions(text, desc, message, writers);
    return addNamed(text, behind, message);
  };
  return {
    write: (message) => `${addFields("{", asMessage(desc, message))}}`,
    writeAny: (typeUrl, message) => `${addFields(beginAny(typeUrl), asMessage(desc, message))}}`,
  };
}

function addNamed(begun: string, fields: readonly NamedWriter[], message: Message): string {
  let text = begun;
  for (const field of fields) {
    const value = writeField(field, message);
    if (value !== undefined) text += (text.length === 1 ? field.first : field.next) + value;
  }
  return text;
}

// Extensions are rare and stored in binary, so protobuf-es reads and writes them.
function addExtensions(begun: string, desc: DescMessage, message: Message, { options }: MessageWriters): string {
  const json = asFieldValues(toJson(withoutFields(desc), message, options));
  let text = begun;
  for (const [name, value] of Object.entries(json))
    text += `${text.length === 1 ? "" : ","}${JSON.stringify(name)}:${JSON.stringify(value)}`;
  return text;
}

const withoutFields = oncePer((desc: DescMessage): DescMessage => ({ ...desc, fields: [] }));

function asMessage(desc: DescMessage, value: unknown): Message {
  if (isMessage(value, desc)) return value;
  throw new TypeError(`not a ${desc.typeName}`);
}

function beginAny(typeUrl: string): string {
  return `{"@type":${JSON.stringify(typeUrl)}`;
}

// An Any may contain a field mask.
const typesOfMasks: ReadonlySet<string> = new Set([FieldMaskSchema.typeName, AnySchema.typeName]);

/** Returns whether a message of this type may hold a field mask, at any depth. */
export const mayHoldMask: (desc: DescMessage) => boolean = oncePer((desc: DescMessage): boolean =>
  mayHold(desc, ({ typeName }) => typesOfMasks.has(typeName)),
);
