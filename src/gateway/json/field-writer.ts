import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { scalarZeroValue } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { asFieldValues, type FieldValues, localFormOf } from "./field-values.ts";
import {
  createEnumWriter,
  createScalarWriter,
  type ValueWriter,
  writePlainObject,
  writeString,
} from "./value-writers.ts";
import type { MessageWriter, MessageWriters } from "./write-context.ts";

/** How a field of a message is written. What all fields have in common is done by {@link writeField}. */
export interface FieldWriter {
  /** The property that holds the value; for a member of a oneof, that of the oneof. */
  readonly property: string;
  /** The value of the property of which the field is left out. */
  readonly unset: unknown;
  /** Writes any other value of the property; returns `undefined` when the field is left out. */
  readonly write: (value: unknown, fields: FieldValues) => string | undefined;
}

/** Writes a field of a message; returns `undefined` when it is left out. */
export function writeField({ property, unset, write }: FieldWriter, fields: FieldValues): string | undefined {
  const value = fields[property];
  return value === unset ? undefined : write(value, fields);
}

// No property has it.
const nothing: unique symbol = Symbol("nothing");

type ListField = DescField & { readonly fieldKind: "list" };
type MapField = DescField & { readonly fieldKind: "map" };
type MessageTypedField = DescField & { readonly message: DescMessage };
type SingularField = Exclude<DescField, ListField | MapField>;

/** Creates the writer of a field. */
export function createFieldWriter(field: DescField, writers: MessageWriters): FieldWriter {
  switch (field.fieldKind) {
    case "list":
      return createListWriter(field, writers);
    case "map":
      return createMapWriter(field, writers);
    default:
      return createSingularWriter(field, writers);
  }
}

function createSingularWriter(field: SingularField, writers: MessageWriters): FieldWriter {
  const write = createValueWriter(field, writers);
  const { localName, oneof } = field;
  if (oneof !== undefined) return createMemberWriter(localName, oneof.localName, write);
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return createPresenceWriter(field, write);
  if (writers.options.alwaysEmitImplicit === true) return { property: localName, unset: nothing, write };
  switch (field.scalar) {
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      // -0 is a value, but equal to 0.
      return {
        property: localName,
        unset: nothing,
        write: (value) => (Object.is(value, 0) ? undefined : write(value)),
      };
    case ScalarType.BYTES:
      return { property: localName, unset: nothing, write: (value) => (isEmpty(value) ? undefined : write(value)) };
    default:
      return { property: localName, unset: zeroOf(field), write };
  }
}

function isEmpty(value: unknown): boolean {
  return value instanceof Uint8Array && value.byteLength === 0;
}

function createMemberWriter(member: string, group: string, write: ValueWriter): FieldWriter {
  return {
    property: group,
    unset: nothing,
    write(oneof) {
      const set = asFieldValues(oneof);
      return set["case"] === member ? write(set["value"]) : undefined;
    },
  };
}

function createPresenceWriter(field: SingularField, write: ValueWriter): FieldWriter {
  const { localName } = field;
  const isRequired = field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
  // A message has no default, which the prototype could have.
  if (field.message !== undefined && !isRequired) return { property: localName, unset: undefined, write };
  return {
    property: localName,
    unset: isRequired ? nothing : undefined,
    write(value, fields) {
      if (value !== undefined && Object.hasOwn(fields, localName)) return write(value);
      if (isRequired) throw new Error(`${String(field)} is required`);
      return undefined;
    },
  };
}

/** Returns the value of which a field of implicit presence is left out, if it is no float and no bytes. */
// The first value of an enum is not 0 in every edition.
export function zeroOf(field: DescField): unknown {
  if (field.enum !== undefined) return field.enum.values[0]?.number;
  return field.scalar === undefined
    ? nothing
    : scalarZeroValue(field.scalar, "longAsString" in field && field.longAsString);
}

/**
 * Items of a longer list are joined so many at a time. V8 keeps a text that is put together as a tree of its parts, which
 * is the fastest way for most lists; but that of ten megabytes costs the garbage collector more than everything else.
 */
const joinedItems = 256;

// Writes some items of a list, without the brackets.
function writeItems(items: readonly unknown[], write: ValueWriter): string {
  if (items.length === joinedItems) return items.map(write).join(",");
  let text = "";
  for (let i = 0; i < items.length; i++) text += i === 0 ? write(items[i]) : `,${write(items[i])}`;
  return text;
}

function createListWriter(field: ListField, writers: MessageWriters): FieldWriter {
  const write = createValueWriter(field, writers);
  const empty = writers.options.alwaysEmitImplicit === true ? "[]" : undefined;
  return {
    property: field.localName,
    unset: nothing,
    write(items) {
      if (!Array.isArray(items)) throw new TypeError(`${String(field)} is no list`);
      if (items.length === 0) return empty;
      if (items.length < joinedItems) return `[${writeItems(items, write)}]`;
      let text = "[";
      for (let start = 0; start < items.length; start += joinedItems)
        text += (start === 0 ? "" : ",") + writeItems(items.slice(start, start + joinedItems), write);
      return `${text}]`;
    },
  };
}

function createMapWriter(field: MapField, writers: MessageWriters): FieldWriter {
  const write = createValueWriter(field, writers);
  const empty = writers.options.alwaysEmitImplicit === true ? "{}" : undefined;
  return {
    property: field.localName,
    unset: nothing,
    write(value) {
      const entries = asFieldValues(value);
      let text = "";
      for (const key of Object.keys(entries))
        text += `${text === "" ? "{" : ","}${writeString(key)}:${write(entries[key])}`;
      return text === "" ? empty : `${text}}`;
    },
  };
}

// Writes a value of a field, or an element of it, from the form in which protobuf-es stores it.
function createValueWriter(field: DescField, writers: MessageWriters): ValueWriter {
  if (field.message !== undefined) return createMessageValueWriter(field, writers);
  return field.enum === undefined
    ? createScalarWriter(field.scalar, writers.options)
    : createEnumWriter(field.enum, writers.options);
}

function createMessageValueWriter(field: MessageTypedField, writers: MessageWriters): ValueWriter {
  const { message } = field;
  const form = localFormOf(field);
  if (form === "json-object") return writePlainObject;
  if (form === "unwrapped" && isWrapperDesc(message)) {
    return createScalarWriter(message.fields[0].scalar, writers.options);
  }
  // Not before it is needed, because the type may be the one that is being compiled.
  let writer: MessageWriter | undefined;
  return (value) => (writer ??= writers.of(message)).write(value);
}
