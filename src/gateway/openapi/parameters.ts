import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { resolveFieldPath, leafOf } from "../rest/field-path.ts";
import { createTextParser } from "../rest/text-value.ts";
import { commentOf, type Comments } from "./comments.ts";
import type { OpenApiParameter, OpenApiSchema } from "./open-api-document.ts";
import type { PathParameter } from "./open-api-path.ts";
import type { FieldsElsewhere, Schemas } from "./schemas.ts";
import { schemaOfWellKnown } from "./value-schema.ts";

/** What parameters are described with. */
export interface ParameterOptions {
  readonly schemas: Schemas;
  readonly comments: Comments;
  readonly useProtoFieldName: boolean;
}

const oneSegment: OpenApiSchema = { type: "string" };

/** Describes a parameter of the path; every one is required (OpenAPI 3.1 §4.8.12.2). */
export function describePathParameter(
  input: DescMessage,
  parameter: PathParameter,
  options: ParameterOptions,
): OpenApiParameter {
  const path = parameter.fieldPath === undefined ? undefined : resolveFieldPath(input, parameter.fieldPath);
  const field = path === undefined ? undefined : leafOf(path);
  const comment = field === undefined ? undefined : commentOf(options.comments, field);
  const coverage = parameter.covers === "segments" ? "Takes any number of segments, slashes between them." : undefined;
  const description = [comment, coverage].filter((part) => part !== undefined).join("\n\n");
  return {
    name: parameter.name,
    in: "path",
    required: true,
    ...(description !== "" && { description }),
    schema: field !== undefined && parameter.covers === "field" ? options.schemas.ofParameter(field) : oneSegment,
  };
}

/**
 * Describes the query of a message: every field that has a text form, those of messages inside it by their
 * dotted path, and not those that path or body bind.
 *
 * A message that holds itself is followed once; the query takes deeper paths than a document can list.
 */
export function describeQuery(
  input: DescMessage,
  elsewhere: FieldsElsewhere,
  options: ParameterOptions,
): readonly OpenApiParameter[] {
  return queryOf(input, elsewhere, "", [input], options);
}

function queryOf(
  message: DescMessage,
  elsewhere: FieldsElsewhere,
  prefix: string,
  above: readonly DescMessage[],
  options: ParameterOptions,
): readonly OpenApiParameter[] {
  return message.fields.flatMap((field): readonly OpenApiParameter[] => {
    const except = elsewhere.get(field);
    if (except === "whole") return [];
    const name = prefix + (options.useProtoFieldName ? field.name : field.jsonName);
    if (createTextParser(field) !== undefined) return [describeQueryParameter(name, field, options)];
    // Only a single message has fields that a dotted path can name, and those of Struct or Any mean nothing to a caller.
    if (field.fieldKind !== "message" || schemaOfWellKnown(field.message) !== undefined) return [];
    if (above.includes(field.message)) return [];
    return queryOf(field.message, except ?? new Map(), `${name}.`, [...above, field.message], options);
  });
}

function describeQueryParameter(name: string, field: DescField, options: ParameterOptions): OpenApiParameter {
  const description = commentOf(options.comments, field);
  return {
    name,
    in: "query",
    ...(field.deprecated && { deprecated: true }),
    ...(description !== undefined && { description }),
    // Repeated: `form`, exploded, which are the defaults (§4.8.12.2.1): `a=1&a=2`.
    schema: options.schemas.ofParameter(field),
  };
}
