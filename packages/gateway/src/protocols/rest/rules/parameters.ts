import type { DescField, DescMessage } from "@bufbuild/protobuf";
import {
  type BoundFields,
  createUrlEntryParser,
  createUrlTextParser,
  FieldProblem,
  type FieldValues,
  isUnknownEnumName,
  quote,
  UnknownNames,
} from "../../../messages/json/index.ts";
import { problem } from "../../../errors/index.ts";
import {
  createPathSetter,
  type FieldPath,
  leafOf,
  printFieldPath,
  resolveDottedPath,
  resolveFieldPath,
} from "./field-path.ts";

/** Which fields of a message the parameters of a query may set. */
export interface ParameterBinding {
  readonly message: DescMessage;
  /** Fields that something else sets, so that no parameter must. */
  readonly boundFields: BoundFields;
  /** Ignores and reports unknown and bound parameters, and unknown enum values, instead of refusing them. */
  readonly lenient: boolean;
  /** Whether `labels[color]=red` sets an entry of a map. */
  readonly takesMaps: boolean;
}

/** A parameter: the field that it sets, and the key of the entry if that is a map. */
interface Parameter {
  readonly path: FieldPath;
  readonly key: string | undefined;
}

/** What parameters have set so far. */
interface ParametersSet {
  readonly fields: FieldValues;
  /** The paths of the fields, each with the key of an entry of a map. */
  readonly seen: Set<string>;
  readonly unknown: UnknownNames;
}

/**
 * Sets a field to a text, unless there is no such field, which is noted.
 *
 * @param parameter - what {@link resolveParameter} has found
 * @throws ConnectError `InvalidArgument` that names the parameter
 */
export function setParameter(
  binding: ParameterBinding,
  parameter: Parameter | undefined,
  name: string,
  value: string,
  { fields, seen, unknown }: ParametersSet,
): void {
  if (parameter === undefined) return unknown.addField(name);
  const { path, key } = parameter;
  if (isOfNewerEnum(binding, parameter, value)) return unknown.addEnumValue(value, path);
  const leaf = leafOf(path);
  try {
    const parsed = parseParameter(leaf, key, value);
    const place = `${printFieldPath(path)}${key === undefined ? "" : `[${key}]`}`;
    if (leaf.fieldKind !== "list" && seen.has(place)) {
      throw problem("ERR_QUERY_INVALID", `query parameter ${quote(name)} is set more than once`);
    }
    seen.add(place);
    createPathSetter(path)(fields, parsed);
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    throw problem("ERR_QUERY_INVALID", `query parameter ${quote(name)} is not valid: ${error.message}`);
  }
}

/** Names that the dotted path of a parameter has at most. 100: protobuf's own recursion limit for messages. */
export const parameterNamesMax = 100;

/** Brackets of a name at which the key of a map's entry may begin. 8: more than the JSON name of any field has. */
const bracketsMax = 8;

/** Finds what a name stands for; `undefined` if that is nothing. @throws ConnectError for what something else sets */
export function resolveParameter(binding: ParameterBinding, name: string): Parameter | undefined {
  const found = findNamed(binding.message, name, binding.takesMaps);
  if (found === undefined) return undefined;
  let bound: BoundFields | "whole" | undefined = binding.boundFields;
  for (const field of found.path) {
    bound = bound.get(field);
    if (bound === undefined) return found;
    if (bound !== "whole") continue;
    if (binding.lenient) return undefined;
    throw problem("ERR_QUERY_INVALID", `query parameter ${quote(name)} is bound by the path or the body`);
  }
  return found;
}

/**
 * Returns the name of the parameter that sets a field, without the key if that is a map: the JSON names that lead to it,
 * with dots between them, or its proto names where the others stand for another field.
 *
 * @param nameOf - returns the JSON name of a field
 * @returns `undefined` if each of both stands for another field
 */
export function parameterNameOf(
  message: DescMessage,
  path: FieldPath,
  nameOf: (field: DescField) => string,
): string | undefined {
  const [suffix, key] = leafOf(path).fieldKind === "map" ? ["[key]", "key"] : ["", undefined];
  return [path.map(nameOf).join("."), printFieldPath(path)].find((name) => {
    const found = findNamed(message, name + suffix, true);
    return found?.key === key && path.every((field, at) => field === found?.path[at]);
  });
}

function findNamed(message: DescMessage, name: string, takesMaps: boolean): Parameter | undefined {
  const entry = takesMaps && name.endsWith("]") ? findEntry(message, name) : undefined;
  const path = entry === undefined ? findPath(message, name) : undefined;
  return entry ?? (path && { path, key: undefined });
}

function findEntry(message: DescMessage, name: string): Parameter | undefined {
  let bracket = name.indexOf("[");
  // Nearly no JSON name has a bracket itself.
  for (let tried = 0; bracket >= 0 && tried < bracketsMax; tried += 1) {
    const path = findPath(message, name.slice(0, bracket));
    if (path !== undefined && leafOf(path).fieldKind === "map") return { path, key: name.slice(bracket + 1, -1) };
    bracket = name.indexOf("[", bracket + 1);
  }
  return undefined;
}

function findPath(message: DescMessage, name: string): FieldPath | undefined {
  const names = name.split(".");
  if (names.length > parameterNamesMax) return undefined;
  // Nearly no JSON name has a dot.
  return resolveFieldPath(message, names) ?? resolveDottedPath(message, names);
}

/** Returns whether a value is ignored because its enum may be a newer one. */
function isOfNewerEnum({ lenient }: ParameterBinding, { path, key }: Parameter, value: string): boolean {
  if (!lenient) return false;
  const leaf = leafOf(path);
  const takesEnum = leaf.fieldKind !== "map" || key !== undefined;
  return takesEnum && leaf.enum !== undefined && isUnknownEnumName(leaf.enum, value);
}

/** Returns the value of a field, or of an element of it; for a map, key and value of an entry. */
function parseParameter(leaf: DescField, key: string | undefined, text: string): unknown {
  if (leaf.fieldKind === "map") {
    const parseEntry = key === undefined ? undefined : createUrlEntryParser(leaf);
    if (parseEntry !== undefined && key !== undefined) return parseEntry(key, text);
  }
  const parse = createUrlTextParser(leaf);
  if (parse === undefined) throw new FieldProblem("its field cannot be set in a query");
  return parse(text);
}
