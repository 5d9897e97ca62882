import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { FieldProblem, quote } from "../json/field-problem.ts";
import type { Fields } from "../json/field-store.ts";
import type { ForbiddenFields } from "../json/read-context.ts";
import { describeUnknown } from "../json/read-json.ts";
import type { FieldPath, FieldSetter } from "./field-path.ts";
import { createFieldSetter, fieldPathLengthMax, leafOf, printFieldPath, resolveFieldPath } from "./field-path.ts";
import { decodePercent } from "./percent.ts";
import type { TextParser } from "./text-value.ts";
import { createTextParser } from "./text-value.ts";

/** One `name=value` of a query, decoded. */
export interface QueryParameter {
  readonly name: string;
  readonly value: string;
}

/** Which fields of a message its query may set. */
export interface QueryBinding {
  readonly message: DescMessage;
  /** Fields that the path or the body binds; they never come from the query. */
  readonly forbidden: ForbiddenFields;
  /** Ignores parameters that name no field, or a forbidden one, and says which they were; otherwise they are refused. */
  readonly lenient: boolean;
}

/**
 * Reads query parameters into a message: `a.b=1&c=x&c=y`, by proto names or JSON names, `c` repeated.
 *
 * The query never overrides what the path or the body has set, and never says a thing twice: a field may
 * come once unless it is repeated, and of a oneof one member.
 *
 * @param query - the raw text behind the question mark
 * @returns the names that were ignored; empty unless `lenient`
 * @throws ConnectError `InvalidArgument`, naming every unknown parameter, or the one with a problem
 */
export function readQuery(binding: QueryBinding, query: string, fields: Fields): readonly string[] {
  const seen = new Set<string>();
  const unknown: string[] = [];
  for (const parameter of parseQuery(query)) {
    const path = resolveParameter(binding, parameter.name);
    if (path === undefined) unknown.push(parameter.name);
    else setParameter(path, parameter, fields, seen);
  }
  if (unknown.length > 0 && !binding.lenient) throw invalid(describeUnknown("query parameter", unknown));
  return unknown;
}

/**
 * Splits a query into its parameters, as application/x-www-form-urlencoded: `&` between them, `+` for a space.
 *
 * @throws ConnectError `InvalidArgument` for a bad escape, bad UTF-8, or a character no URL has
 */
export function parseQuery(query: string): readonly QueryParameter[] {
  const parameters: QueryParameter[] = [];
  for (const text of query.split("&")) {
    if (text === "") continue;
    const equals = text.indexOf("=");
    const name = decodeQueryText(equals < 0 ? text : text.slice(0, equals));
    const value = equals < 0 ? "" : decodeQueryText(text.slice(equals + 1));
    if (name === undefined || value === undefined) throw invalid(`query parameter ${quote(text)} is malformed`);
    parameters.push({ name, value });
  }
  return parameters;
}

// Printable ASCII, as RFC 3986 §3.4 has it, and what browsers leave unescaped.
const queryText = /^[!-~]*$/;

function decodeQueryText(text: string): string | undefined {
  return queryText.test(text) ? decodePercent(text.replaceAll("+", " ")) : undefined;
}

function resolveParameter(binding: QueryBinding, name: string): FieldPath | undefined {
  const names = name.split(".");
  if (names.length > fieldPathLengthMax) return undefined;
  const path = resolveFieldPath(binding.message, names);
  if (path === undefined) return undefined;
  let forbidden: ForbiddenFields | true | undefined = binding.forbidden;
  for (const field of path) {
    forbidden = forbidden.get(field);
    if (forbidden === undefined) return path;
    if (forbidden !== true) continue;
    if (binding.lenient) return undefined;
    throw invalid(`query parameter ${quote(name)}: is bound by the path or the body`);
  }
  return path;
}

function setParameter(path: FieldPath, parameter: QueryParameter, fields: Fields, seen: Set<string>): void {
  const leaf = leafOf(path);
  const access = accessOf(leaf);
  try {
    if (access.parse === undefined) throw new FieldProblem("cannot be set by a query parameter");
    const name = printFieldPath(path);
    if (leaf.fieldKind !== "list" && seen.has(name)) throw new FieldProblem("is set more than once");
    seen.add(name);
    const set: FieldSetter = path.length === 1 ? access.set : createFieldSetter(path);
    set(fields, access.parse(parameter.value));
  } catch (error) {
    if (error instanceof FieldProblem) throw invalid(`query parameter ${quote(parameter.name)}: ${error.message}`);
    throw error;
  }
}

interface FieldAccess {
  readonly parse: TextParser | undefined;
  readonly set: FieldSetter;
}

const accessByField = new WeakMap<DescField, FieldAccess>();

function accessOf(field: DescField): FieldAccess {
  let access = accessByField.get(field);
  if (access === undefined) {
    access = { parse: createTextParser(field), set: createFieldSetter([field]) };
    accessByField.set(field, access);
  }
  return access;
}

function invalid(message: string): ConnectError {
  return new ConnectError(message, Code.InvalidArgument);
}
