import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { type BoundFields, createUrlEntryParser, createUrlTextParser } from "../protobuf/index.ts";
import { type FieldPath, leafOf, parameterNameOf, maxParameterNames, resolveProtoPath } from "../protocols/index.ts";
import type { FieldBudget } from "./field-budget.ts";
import { isOutputOnly } from "./field-behavior.ts";
import type { OpenApiParameter, OpenApiSchema } from "./open-api-document.ts";
import type { PathParameter } from "./open-api-path.ts";
import type { Schemas } from "./schemas.ts";
import { schemaOfWellKnown } from "./value-schema.ts";

const oneSegmentSchema: OpenApiSchema = { type: "string", pattern: "^[^/]+$" };
const severalSegmentsSchema: OpenApiSchema = { type: "string" };

/** Describes a path parameter, which is always required (OpenAPI 3.1 §4.8.12.2). */
export function describePathParameter(
  input: DescMessage,
  parameter: PathParameter,
  schemas: Schemas,
): OpenApiParameter {
  const path = parameter.fieldPath === undefined ? undefined : resolveProtoPath(input, parameter.fieldPath);
  const field = path === undefined ? undefined : leafOf(path);
  // The field's comment describes the complete value, so the comment would be misleading for one segment.
  const comment = parameter.description ?? (field && schemas.commentOf(field));
  const coverage = parameter.covers === "segments" ? "Any number of path segments, separated by slashes." : undefined;
  const description = [comment, coverage].filter((text) => text !== undefined).join("\n\n");
  return {
    name: parameter.name,
    in: "path",
    required: true,
    ...(field?.deprecated === true && { deprecated: true }),
    ...(description !== "" && { description }),
    schema: parameterSchemaOf(parameter, field, schemas),
  };
}

function parameterSchemaOf({ covers }: PathParameter, field: DescField | undefined, schemas: Schemas): OpenApiSchema {
  if (covers === "segments") return severalSegmentsSchema;
  return covers === "field" && field !== undefined ? schemas.ofParameter(field) : oneSegmentSchema;
}

interface QueryOptions {
  /** Whether the query may set map fields. */
  readonly acceptsMaps?: boolean;
  /** The budget for fields. The most deeply nested fields are omitted if the budget is exceeded. */
  readonly budget: FieldBudget;
}

/**
 * Describes a message's query parameters. A nested field's parameter has a dotted path as its name. Fields that the
 * path or the body sets, fields that only responses set, and fields with ambiguous names are omitted. Recursive fields
 * are listed once, although the query accepts deeper paths.
 */
export function describeQuery(
  input: DescMessage,
  bound: BoundFields,
  schemas: Schemas,
  options: QueryOptions,
): readonly OpenApiParameter[] {
  const first: QueryMessage = {
    message: input,
    bound,
    path: [],
    enclosingMessages: [input],
    isRequired: true,
    parameters: [],
  };
  // The search is breadth-first, so that the deepest fields are omitted if the budget is exceeded.
  const messages = [first];
  for (const current of messages) {
    for (const field of current.message.fields) {
      const described = describeInQuery(field, current, schemas, options);
      if (options.budget.isExceeded) return flatten(first);
      if (described !== undefined) current.parameters.push(described);
      if (described !== undefined && "parameters" in described) messages.push(described);
    }
  }
  return flatten(first);
}

/** A message whose fields are query parameters, and the path to the message. */
interface QueryMessage {
  readonly message: DescMessage;
  readonly bound: BoundFields;
  /** The path of fields that leads from the request message to this message. */
  readonly path: readonly DescField[];
  /** The message types on this path, including the request message and this message. */
  readonly enclosingMessages: readonly [DescMessage, ...DescMessage[]];
  /** Whether all fields in `path` must be set. */
  readonly isRequired: boolean;
  /** The parameters and nested messages, in field order. */
  readonly parameters: (OpenApiParameter | QueryMessage)[];
}

function flatten({ parameters }: QueryMessage): readonly OpenApiParameter[] {
  return parameters.flatMap((each) => ("parameters" in each ? flatten(each) : [each]));
}

/** Returns a field's parameter or {@link QueryMessage}, or `undefined` if the query cannot set the field. */
function describeInQuery(
  field: DescField,
  { bound, path: outer, enclosingMessages, isRequired: isInRequired }: QueryMessage,
  schemas: Schemas,
  options: QueryOptions,
): OpenApiParameter | QueryMessage | undefined {
  const nestedBound = bound.get(field);
  if (nestedBound === "whole" || isOutputOnly(field)) return undefined;
  const [first, ...inner] = [...outer, field];
  const path: FieldPath = [first, ...inner];
  const names = path.map((each) => schemas.nameOf(each));
  if (!options.budget.takeField(names.join("."), schemas.commentOf(field))) return undefined;
  const required = isInRequired && schemas.isRequired(field);
  const described = describeQueryValue(field, required, schemas, options);
  if (described !== undefined) {
    const name = parameterNameOf(enclosingMessages[0], path, (each) => schemas.nameOf(each));
    return name === undefined
      ? undefined
      : { name, ...described, ...(isSplitInto(name, names) ? {} : { "x-field": names }) };
  }
  // A dotted path can lead through singular messages, but not into a Struct, an Any or another well-known type.
  if (field.fieldKind !== "message" || schemaOfWellKnown(field.message) !== undefined) return undefined;
  if (enclosingMessages.includes(field.message) || enclosingMessages.length >= maxParameterNames) return undefined;
  return {
    message: field.message,
    bound: nestedBound ?? new Map(),
    path,
    enclosingMessages: [enclosingMessages[0], ...enclosingMessages.slice(1), field.message],
    isRequired: required,
    parameters: [],
  };
}

function isSplitInto(name: string, names: readonly string[]): boolean {
  return name.split(".").every((each, at) => each === names[at]);
}

/** Describes a field's values in the query. Returns `undefined` if no query parameter can set the field. */
function describeQueryValue(
  field: DescField,
  required: boolean,
  schemas: Schemas,
  { acceptsMaps = false }: QueryOptions,
): Omit<OpenApiParameter, "name"> | undefined {
  const isMap = acceptsMaps && field.fieldKind === "map" && createUrlEntryParser(field) !== undefined;
  if (!isMap && createUrlTextParser(field) === undefined) return undefined;
  const description = schemas.commentOf(field);
  return {
    in: "query",
    ...(required && { required: true }),
    ...(field.deprecated && { deprecated: true }),
    ...(description !== undefined && { description }),
    // By default a list is written as `a=1&a=2` (§4.8.12.2.1: style `form`, exploded).
    schema: schemas.ofParameter(field),
    // A map is written as `labels[color]=red` (§4.8.12.3, "Style Values").
    ...(isMap && { style: "deepObject", explode: true }),
  };
}
