import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  createUrlTextParser,
  FieldProblem,
  type FieldValues,
  type BoundFields,
  isUnknownEnumName,
  quote,
  UnknownNames,
} from "../json/index.ts";
import { createPathSetter, type FieldPath, leafOf, printFieldPath, resolveFieldPath } from "./field-path.ts";
import { decodePercent } from "./raw-path.ts";

/** One decoded `name=value` of a query. */
interface QueryParameter {
  readonly name: string;
  readonly value: string;
}

/** Which fields of a message a query may set. */
export interface QueryBinding {
  readonly message: DescMessage;
  /** Fields that the path or the body sets, so that the query must not. */
  readonly boundFields: BoundFields;
  /** Ignores and reports unknown and bound parameters, and unknown enum values, instead of refusing them. */
  readonly lenient: boolean;
}

/**
 * Reads query parameters into a message, by proto names or JSON names: `a.b=1&c=x&c=y`, where `c` is repeated.
 *
 * The query never overrides what the path or the body sets. A field may be set once unless it is repeated, and only one
 * member of a oneof.
 *
 * @param query - the raw text after the question mark
 * @returns what was ignored; nothing unless `lenient`
 * @throws ConnectError `InvalidArgument` that names every unknown parameter, or the one that is wrong
 */
export function readQuery(binding: QueryBinding, query: string, fields: FieldValues): UnknownNames {
  const seen = new Set<string>();
  const unknown = new UnknownNames();
  for (const parameter of parseQuery(query)) {
    const path = resolveParameter(binding, parameter.name);
    if (path === undefined) unknown.addField(parameter.name);
    else if (binding.lenient && isOfNewerEnum(leafOf(path), parameter)) unknown.addEnumValue(parameter.value, path);
    else setParameter(path, parameter, fields, seen);
  }
  if (unknown.count > 0 && !binding.lenient) throw invalid(unknown.describe("query parameter"));
  return unknown;
}

// As application/x-www-form-urlencoded: `&` between parameters, `+` for a space.
function parseQuery(query: string): readonly QueryParameter[] {
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

// Printable ASCII: what RFC 3986 §3.4 allows, and what browsers send unescaped beyond that.
const queryText = /^[!-~]*$/;

function decodeQueryText(text: string): string | undefined {
  return queryText.test(text) ? decodePercent(text.replaceAll("+", " ")) : undefined;
}

// Protobuf's own recursion limit for messages.
const namesMax = 100;

function resolveParameter(binding: QueryBinding, name: string): FieldPath | undefined {
  const names = name.split(".");
  if (names.length > namesMax) return undefined;
  const path = resolveFieldPath(binding.message, names);
  if (path === undefined) return undefined;
  let bound: BoundFields | "whole" | undefined = binding.boundFields;
  for (const field of path) {
    bound = bound.get(field);
    if (bound === undefined) return path;
    if (bound !== "whole") continue;
    if (binding.lenient) return undefined;
    throw invalid(`query parameter ${quote(name)}: is bound by the path or the body`);
  }
  return path;
}

function isOfNewerEnum(leaf: DescField, { value }: QueryParameter): boolean {
  return leaf.fieldKind !== "map" && leaf.enum !== undefined && isUnknownEnumName(leaf.enum, value);
}

function setParameter(path: FieldPath, parameter: QueryParameter, fields: FieldValues, seen: Set<string>): void {
  const leaf = leafOf(path);
  const parse = createUrlTextParser(leaf);
  try {
    if (parse === undefined) throw new FieldProblem("cannot be set by a query parameter");
    const name = printFieldPath(path);
    if (leaf.fieldKind !== "list" && seen.has(name)) throw new FieldProblem("is set more than once");
    seen.add(name);
    createPathSetter(path)(fields, parse(parameter.value));
  } catch (error) {
    if (error instanceof FieldProblem) throw invalid(`query parameter ${quote(parameter.name)}: ${error.message}`);
    throw error;
  }
}

function invalid(message: string): ConnectError {
  return new ConnectError(message, Code.InvalidArgument);
}
