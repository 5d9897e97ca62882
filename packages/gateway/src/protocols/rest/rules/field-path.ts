import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import {
  asFieldValues,
  createFieldSetter,
  type FieldSetter,
  type FieldValues,
  findField,
  hasCustomJsonRepresentation,
  loadField,
  refuseOtherMember,
  setOwn,
} from "../../../messages/json/index.ts";

/** The fields that lead from a message to a field inside it; the last is the field itself. */
export type FieldPath = readonly [DescField, ...DescField[]];

/** Finds a field of a message by a name. */
type FindField = (message: DescMessage, name: string) => DescField | undefined;

/** Finds a field by its proto name, as HTTP rules name it. JSON names are for requests only. */
export function findProtoField(message: DescMessage, name: string): DescField | undefined {
  return message.fields.find((field) => field.name === name);
}

/**
 * Resolves a path of proto names, as HTTP rules have it.
 *
 * @returns `undefined` when a name is unknown, or the path leads through anything but a message with fields: a scalar,
 * a list, a map, or a well-known type such as Timestamp, whose fields are not part of its JSON either
 */
export function resolveProtoPath(message: DescMessage, names: readonly string[]): FieldPath | undefined {
  return resolvePath(message, names, findProtoField);
}

/** Resolves a path of names as requests have them: JSON names or proto names. Returns what {@link resolveProtoPath} does. */
export function resolveFieldPath(message: DescMessage, names: readonly string[]): FieldPath | undefined {
  return resolvePath(message, names, findField);
}

function resolvePath(message: DescMessage, names: readonly string[], find: FindField): FieldPath | undefined {
  let parent: DescMessage | undefined = message;
  const fields: DescField[] = [];
  for (const name of names) {
    const field: DescField | undefined = parent === undefined ? undefined : find(parent, name);
    if (field === undefined) return undefined;
    fields.push(field);
    parent = field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message) ? field.message : undefined;
  }
  const [first, ...rest] = fields;
  return first === undefined ? undefined : [first, ...rest];
}

/**
 * Resolves a path as {@link resolveFieldPath} does, where JSON names may have dots in them: each may be several of the
 * names that the dots separate. Takes time that grows with the square of their number, whatever the fields are called.
 */
export function resolveDottedPath(message: DescMessage, names: readonly string[]): FieldPath | undefined {
  // Messages from which the names after some index lead nowhere.
  const failed = names.map(() => new Set<DescMessage>());
  const resolve = (parent: DescMessage, start: number): readonly DescField[] | undefined => {
    if (failed[start]?.has(parent) === true) return undefined;
    for (let end = start + 1; end <= names.length; end += 1) {
      const field = findField(parent, names.slice(start, end).join("."));
      if (field === undefined) continue;
      if (end === names.length) return [field];
      const below = field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message) && field.message;
      const rest = below === false ? undefined : resolve(below, end);
      if (rest !== undefined) return [field, ...rest];
    }
    failed[start]?.add(parent);
    return undefined;
  };
  const [first, ...rest] = resolve(message, 0) ?? [];
  return first === undefined ? undefined : [first, ...rest];
}

/** Prints a path in proto names, as rules and error messages do. */
export function printFieldPath(path: FieldPath): string {
  return path.map((field) => field.name).join(".");
}

/** Returns the last field of the path. */
export function leafOf(path: FieldPath): DescField {
  return path.at(-1) ?? path[0];
}

/**
 * Creates the setter of a field path. It creates missing messages on the way, and appends if the field is repeated. The
 * value for a map is the key and the value of an entry.
 *
 * The setter throws a FieldProblem instead of replacing another member of a oneof.
 */
export function createPathSetter(path: FieldPath): FieldSetter {
  const leaf = leafOf(path);
  const [first] = path;
  const isSingle = leaf.fieldKind !== "list" && leaf.fieldKind !== "map";
  if (path.length === 1 && isSingle && leaf.oneof === undefined) return createFieldSetter(first);
  const parents = path.slice(0, -1);
  const store = isSingle ? createFieldSetter(leaf) : leaf.fieldKind === "list" ? createAppend(leaf) : createEntry(leaf);
  return (fields, value) => {
    let parent = fields;
    for (const field of parents) parent = childOf(parent, field);
    refuseOtherMember(parent, leaf);
    store(parent, value);
  };
}

/** Returns the message in a field, which is created if it is missing. @throws FieldProblem for a member of a oneof of which another is set */
function childOf(parent: FieldValues, field: DescField): FieldValues {
  const child = loadField(parent, field);
  if (child !== undefined) return asFieldValues(child);
  refuseOtherMember(parent, field);
  if (field.fieldKind !== "message") throw new TypeError("not a message field");
  const created = create(field.message);
  createFieldSetter(field)(parent, created);
  return created;
}

function createAppend(field: DescField): FieldSetter {
  return (fields, value) => {
    const items = fields[field.localName];
    if (Array.isArray(items)) items.push(value);
  };
}

function createEntry(field: DescField): FieldSetter {
  return (fields, value) => {
    if (Array.isArray(value)) setOwn(asFieldValues(fields[field.localName]), String(value[0]), value[1]);
  };
}
