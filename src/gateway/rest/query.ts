import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { codedError } from "../errors/index.ts";
import {
  createUrlEntryParser,
  createUrlTextParser,
  FieldProblem,
  type FieldValues,
  type BoundFields,
  isUnknownEnumName,
  quote,
  UnknownNames,
} from "../json/index.ts";
import { createPathSetter, type FieldPath, leafOf, printFieldPath, resolveFieldPath } from "./field-path.ts";
import { createNameFilter } from "./name-filter.ts";
import { decodePercent } from "./raw-path.ts";
import type { BindingOptions } from "./rest-options.ts";

/** Which fields of a message a query may set. */
export interface QueryBinding {
  readonly message: DescMessage;
  /** Fields that the path or the body sets, so that the query must not. */
  readonly boundFields: BoundFields;
  /** Ignores and reports unknown and bound parameters, and unknown enum values, instead of refusing them. */
  readonly lenient: boolean;
  /** Whether `labels[color]=red` sets an entry of a map. */
  readonly takesMaps: boolean;
  /** Whether names of enum values may lack their prefix. */
  readonly shortEnumNames: boolean;
  /** Says which parameters that name no field are ignored without a report; `undefined` for none. */
  readonly isIgnored: ((name: string) => boolean) | undefined;
}

/** Creates the query binding of a rule. */
export function createQueryBinding(
  message: DescMessage,
  boundFields: BoundFields,
  { lenient, mapsInQuery, shortEnumNames, ignoredQueryParameters }: BindingOptions,
): QueryBinding {
  const isIgnored = createNameFilter(ignoredQueryParameters);
  return { message, boundFields, lenient, takesMaps: mapsInQuery, shortEnumNames, isIgnored };
}

/** A parameter of a query: the field that it sets, and the key of the entry if that is a map. */
interface Parameter {
  readonly name: string;
  readonly path: FieldPath;
  readonly key: string | undefined;
}

/**
 * Reads query parameters into a message, by proto names or JSON names: `a.b=1&c=x&c=y`, where `c` is repeated.
 *
 * The query never overrides what the path or the body sets. A field, or an entry of a map, may be set once unless it is
 * repeated, and only one member of a oneof.
 *
 * @param query - the raw text after the question mark
 * @returns what was ignored; nothing unless `lenient`
 * @throws ConnectError `InvalidArgument` that names every unknown parameter, or the one that is wrong
 */
export function readQuery(binding: QueryBinding, query: string, fields: FieldValues): UnknownNames {
  const seen = new Set<string>();
  const unknown = new UnknownNames();
  // As application/x-www-form-urlencoded: `&` between parameters, `+` for a space.
  for (const text of query.split("&")) {
    if (text === "") continue;
    const equals = text.indexOf("=");
    const name = decodeQueryText(equals < 0 ? text : text.slice(0, equals));
    const parameter = name === undefined ? undefined : resolveParameter(binding, name);
    if (name !== undefined && parameter === undefined && binding.isIgnored?.(name) === true) continue;
    const value = equals < 0 ? "" : decodeQueryText(text.slice(equals + 1));
    if (name === undefined || value === undefined) throw invalid(`query parameter ${quote(text)} is malformed`);
    if (parameter === undefined) unknown.addField(name);
    else if (isOfNewerEnum(binding, parameter, value)) unknown.addEnumValue(value, parameter.path);
    else setParameter(binding, parameter, value, { fields, seen });
  }
  if (unknown.count > 0 && !binding.lenient) throw invalid(unknown.describe("query parameter"));
  return unknown;
}

/** Returns whether a query has a parameter that is not ignored, however wrong it is. */
export function hasParameters({ isIgnored }: QueryBinding, query: string): boolean {
  const isParameter = (text: string): boolean => {
    const [name = ""] = text.split("=", 1);
    return text !== "" && isIgnored?.(decodeQueryText(name) ?? "") !== true;
  };
  return query.split("&").some(isParameter);
}

// Printable ASCII: what RFC 3986 §3.4 allows, and what browsers send unescaped beyond that.
const queryText = /^[!-~]*$/;

function decodeQueryText(text: string): string | undefined {
  return queryText.test(text) ? decodePercent(text.replaceAll("+", " ")) : undefined;
}

// Protobuf's own recursion limit for messages.
const namesMax = 100;

function resolveParameter(binding: QueryBinding, name: string): Parameter | undefined {
  const bracket = binding.takesMaps && name.endsWith("]") ? name.indexOf("[") : -1;
  const key = bracket < 0 ? undefined : name.slice(bracket + 1, -1);
  const names = (bracket < 0 ? name : name.slice(0, bracket)).split(".");
  if (names.length > namesMax) return undefined;
  const path = resolveFieldPath(binding.message, names);
  if (path === undefined || (key !== undefined && leafOf(path).fieldKind !== "map")) return undefined;
  let bound: BoundFields | "whole" | undefined = binding.boundFields;
  for (const field of path) {
    bound = bound.get(field);
    if (bound === undefined) break;
    if (bound !== "whole") continue;
    if (binding.lenient) return undefined;
    throw invalid(`query parameter ${quote(name)}: is bound by the path or the body`);
  }
  return { name, path, key };
}

/** Returns whether a value is ignored because its enum may be a newer one. */
function isOfNewerEnum({ lenient, shortEnumNames }: QueryBinding, { path, key }: Parameter, value: string): boolean {
  if (!lenient) return false;
  const leaf = leafOf(path);
  const takesEnum = leaf.fieldKind !== "map" || key !== undefined;
  return takesEnum && leaf.enum !== undefined && isUnknownEnumName(leaf.enum, value, shortEnumNames);
}

function setParameter(
  { shortEnumNames }: QueryBinding,
  { name, path, key }: Parameter,
  text: string,
  { fields, seen }: { readonly fields: FieldValues; readonly seen: Set<string> },
): void {
  const leaf = leafOf(path);
  try {
    const value = parseParameter(leaf, key, text, shortEnumNames);
    const place = `${printFieldPath(path)}${key === undefined ? "" : `[${key}]`}`;
    if (leaf.fieldKind !== "list" && seen.has(place)) throw new FieldProblem("is set more than once");
    seen.add(place);
    createPathSetter(path)(fields, value);
  } catch (error) {
    if (error instanceof FieldProblem) throw invalid(`query parameter ${quote(name)}: ${error.message}`);
    throw error;
  }
}

/** Returns the value of a field, or of an element of it; for a map, key and value of an entry. */
function parseParameter(leaf: DescField, key: string | undefined, text: string, shortEnumNames: boolean): unknown {
  if (leaf.fieldKind === "map") {
    const parseEntry = key === undefined ? undefined : createUrlEntryParser(leaf, shortEnumNames);
    if (parseEntry !== undefined && key !== undefined) return parseEntry(key, text);
  }
  const parse = createUrlTextParser(leaf, shortEnumNames);
  if (parse === undefined) throw new FieldProblem("cannot be set by a query parameter");
  return parse(text);
}

function invalid(message: string): ConnectError {
  return codedError("ERR_QUERY_INVALID", message, Code.InvalidArgument);
}
