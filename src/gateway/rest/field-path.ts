import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { FieldProblem } from "../json/field-problem.ts";
import type { Fields } from "../json/field-store.ts";
import { createFieldStore, fieldsOf, loadField } from "../json/field-store.ts";

/** A field inside of a message, as the fields that lead to it; the last one is the field itself. */
export type FieldPath = readonly [DescField, ...DescField[]];

/** Deepest field path of a query parameter, in names: protobuf's own recursion limit for messages. */
export const fieldPathLengthMax = 100;

const namesByMessage = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** A field of a message by its proto name or its JSON name. */
export function findField(message: DescMessage, name: string): DescField | undefined {
  let names = namesByMessage.get(message);
  if (names === undefined) {
    // Where the JSON name of one field is the proto name of another, the proto name has it.
    names = new Map([
      ...message.fields.map((field): [string, DescField] => [field.jsonName, field]),
      ...message.fields.map((field): [string, DescField] => [field.name, field]),
    ]);
    namesByMessage.set(message, names);
  }
  return names.get(name);
}

/** A field of a message by its proto name, as rules name fields. */
export function findProtoField(message: DescMessage, name: string): DescField | undefined {
  const field = findField(message, name);
  return field?.name === name ? field : undefined;
}

/**
 * Resolves a dotted path of names; `undefined` when a name is unknown, or leads through something that is
 * not one message of fields: a scalar, a list, a map, or a well-known type with a form of its own, such as
 * Timestamp, whose fields are no part of its JSON either.
 */
export function resolveFieldPath(message: DescMessage, names: readonly string[]): FieldPath | undefined {
  let parent: DescMessage | undefined = message;
  const fields: DescField[] = [];
  for (const name of names) {
    const field: DescField | undefined = parent === undefined ? undefined : findField(parent, name);
    if (field === undefined) return undefined;
    fields.push(field);
    parent = field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message) ? field.message : undefined;
  }
  const [first, ...rest] = fields;
  return first === undefined ? undefined : [first, ...rest];
}

/** The path in proto names, as error messages and rules spell it. */
export function printFieldPath(path: FieldPath): string {
  return path.map((field) => field.name).join(".");
}

/** The last field of the path. */
export function leafOf(path: FieldPath): DescField {
  return path.at(-1) ?? path[0];
}

/** Puts a value into a message, or into a message inside of it. */
export type FieldSetter = (fields: Fields, value: unknown) => void;

/**
 * Makes the setter of a field path; it makes the messages on the way that are not there yet, and appends
 * where the field is repeated.
 *
 * The setter throws a {@link FieldProblem} rather than replace another member of a oneof.
 */
export function createFieldSetter(path: FieldPath): FieldSetter {
  const leaf = leafOf(path);
  const [first] = path;
  if (path.length === 1 && leaf.fieldKind !== "list" && leaf.oneof === undefined) return createFieldStore(first);
  const parents = path.slice(0, -1);
  const store = leaf.fieldKind === "list" ? createAppend(leaf) : createFieldStore(leaf);
  return (fields, value) => {
    let parent = fields;
    for (const field of parents) parent = childOf(parent, field);
    refuseOtherMember(parent, leaf);
    store(parent, value);
  };
}

function childOf(parent: Fields, field: DescField): Fields {
  const child = loadField(parent, field);
  if (child !== undefined) return fieldsOf(child);
  refuseOtherMember(parent, field);
  if (field.fieldKind !== "message") throw new TypeError("not a message field");
  const created = create(field.message);
  createFieldStore(field)(parent, created);
  return fieldsOf(created);
}

function refuseOtherMember(parent: Fields, field: DescField): void {
  if (field.oneof === undefined) return;
  const set = fieldsOf(parent[field.oneof.localName])["case"];
  if (set === undefined || set === field.localName) return;
  const other = field.oneof.fields.find((member) => member.localName === set);
  throw new FieldProblem(`cannot be set together with ${other?.name ?? "another member of its oneof"}`);
}

function createAppend(field: DescField): FieldSetter {
  return (fields, value) => {
    const items = fields[field.localName];
    if (Array.isArray(items)) items.push(value);
  };
}
