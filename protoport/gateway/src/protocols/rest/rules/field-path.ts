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
} from "../../../protobuf/index.ts";

/** The path from a message to a field inside the message. The last item is the field itself. */
export type FieldPath = readonly [DescField, ...DescField[]];

type FindField = (message: DescMessage, name: string) => DescField | undefined;

/** Finds a field by its proto name. HTTP rules use proto names, and only requests use JSON names. */
export function findProtoField(message: DescMessage, name: string): DescField | undefined {
  return message.fields.find((field) => field.name === name);
}

/**
 * Resolves a proto name path, as in HTTP rules.
 *
 * @returns `undefined` if a name is unknown, or the path leads through a scalar, a list, a map, or a well-known type
 * such as Timestamp. The JSON of a well-known type does not contain its fields
 */
export function resolveProtoPath(message: DescMessage, names: readonly string[]): FieldPath | undefined {
  return resolvePath(message, names, findProtoField);
}

/** Resolves a path with JSON names or proto names, as in requests. Otherwise works as {@link resolveProtoPath}. */
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
 * Resolves a path as {@link resolveFieldPath} does. Adjacent names are also joined, to find JSON names that contain
 * dots. The time is at most quadratic in the number of names.
 */
export function resolveDottedPath(message: DescMessage, names: readonly string[]): FieldPath | undefined {
  // For each start index, the message types in which the rest of the path cannot be resolved.
  const unresolvable = names.map(() => new Set<DescMessage>());
  const resolve = (parent: DescMessage, start: number): readonly DescField[] | undefined => {
    if (unresolvable[start]?.has(parent) === true) return undefined;
    for (let end = start + 1; end <= names.length; end += 1) {
      const field = findField(parent, names.slice(start, end).join("."));
      if (field === undefined) continue;
      if (end === names.length) return [field];
      const nested = field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message) && field.message;
      const restOfPath = nested === false ? undefined : resolve(nested, end);
      if (restOfPath !== undefined) return [field, ...restOfPath];
    }
    unresolvable[start]?.add(parent);
    return undefined;
  };
  const [first, ...rest] = resolve(message, 0) ?? [];
  return first === undefined ? undefined : [first, ...rest];
}

/** Prints a path in proto names, as rules and error messages do. */
export function printFieldPath(path: FieldPath): string {
  return path.map((field) => field.name).join(".");
}

/** Returns the path's last field. */
export function leafOf(path: FieldPath): DescField {
  return path.at(-1) ?? path[0];
}

/**
 * Creates a field path's setter. The setter creates missing messages along the path, and appends to a repeated field.
 * For a map, the value is a pair of an entry's key and an entry's value.
 *
 * The setter throws a FieldProblem if another member of the field's oneof is already set.
 */
export function createPathSetter(path: FieldPath): FieldSetter {
  const leaf = leafOf(path);
  const [first] = path;
  const isSingle = leaf.fieldKind !== "list" && leaf.fieldKind !== "map";
  if (path.length === 1 && isSingle && leaf.oneof === undefined) return createFieldSetter(first);
  const parents = path.slice(0, -1);
  const setLeaf = isSingle
    ? createFieldSetter(leaf)
    : leaf.fieldKind === "list"
      ? createAppend(leaf)
      : createEntry(leaf);
  return (fields, value) => {
    let parent = fields;
    for (const field of parents) parent = childOf(parent, field);
    refuseOtherMember(parent, leaf);
    setLeaf(parent, value);
  };
}

/** Returns the message in a field, created if missing. @throws FieldProblem if another oneof member is set */
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
