import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { type BoundFields, createUrlEntryParser, createUrlTextParser } from "../json/index.ts";
import { type FormPlace, isFileOf, leafOf, type PartsPlace, resolveFieldPath } from "../rest/index.ts";
import { isOutputOnly, isRequired } from "./field-behavior.ts";
import type { OpenApiParameter, OpenApiSchema } from "./open-api-document.ts";
import type { PathParameter } from "./open-api-path.ts";
import type { Schemas } from "./schemas.ts";
import { schemaOfWellKnown } from "./value-schema.ts";

const oneSegment: OpenApiSchema = { type: "string", pattern: "^[^/]+$" };
const anySegments: OpenApiSchema = { type: "string" };

/** Describes a path parameter, which is always required (OpenAPI 3.1 §4.8.12.2). */
export function describePathParameter(
  input: DescMessage,
  parameter: PathParameter,
  schemas: Schemas,
): OpenApiParameter {
  const path = parameter.fieldPath === undefined ? undefined : resolveFieldPath(input, parameter.fieldPath);
  const field = path === undefined ? undefined : leafOf(path);
  // A comment is about the whole field: who types what it says for a part of it names something else.
  const about = parameter.place ?? (field && schemas.commentOf(field));
  const coverage = parameter.covers === "segments" ? "Takes any number of segments, slashes between them." : undefined;
  const description = [about, coverage].filter((text) => text !== undefined).join("\n\n");
  return {
    name: parameter.name,
    in: "path",
    required: true,
    ...(field?.deprecated === true && { deprecated: true }),
    ...(description !== "" && { description }),
    schema: schemaOf(parameter, field, schemas),
  };
}

function schemaOf({ covers }: PathParameter, field: DescField | undefined, schemas: Schemas): OpenApiSchema {
  if (covers === "segments") return anySegments;
  return covers === "field" && field !== undefined ? schemas.ofParameter(field) : oneSegment;
}

/**
 * Describes the query parameters of a message: all fields with a text form, nested ones by their dotted path, except
 * those that the path or the body sets, or that only answers set.
 *
 * Maps are among them where `takesMaps`. A message that contains itself is listed once, although the query accepts deeper paths.
 */
export function describeQuery(
  input: DescMessage,
  bound: BoundFields,
  schemas: Schemas,
  takesMaps: boolean,
): readonly OpenApiParameter[] {
  return queryOf(input, bound, { prefix: "", above: [input], isRequired: true, takesMaps }, schemas);
}

/** The place in the request message of a message whose fields are query parameters. */
interface QueryPlace {
  /** The names that lead to it, each followed by a dot. */
  readonly prefix: string;
  /** The messages that lead to it, itself included. */
  readonly above: readonly DescMessage[];
  /** Whether all fields that lead to it must be set. */
  readonly isRequired: boolean;
  /** Whether entries of maps may be set. */
  readonly takesMaps: boolean;
  /** Says which fields are files. */
  readonly isFile?: (field: DescField) => boolean;
}

function queryOf(
  message: DescMessage,
  bound: BoundFields,
  { prefix, above, isRequired: isInRequired, takesMaps, isFile }: QueryPlace,
  schemas: Schemas,
): readonly OpenApiParameter[] {
  return message.fields.flatMap((field): readonly OpenApiParameter[] => {
    const below = bound.get(field);
    if (below === "whole" || isOutputOnly(field)) return [];
    const name = prefix + schemas.nameOf(field);
    const must = isInRequired && isRequired(field);
    if (isFile?.(field) === true) return [{ name, in: "query", ...(must && { required: true }), schema: fileSchema }];
    if (createUrlTextParser(field) !== undefined) return [describeQueryParameter(name, field, must, schemas)];
    if (takesMaps && field.fieldKind === "map" && createUrlEntryParser(field) !== undefined) {
      // `labels[color]=red` (§4.8.12.3, "Style Values").
      return [{ ...describeQueryParameter(name, field, must, schemas), style: "deepObject", explode: true }];
    }
    // A dotted path can lead only through a single message, and not into the fields of Struct or Any.
    if (field.fieldKind !== "message" || schemaOfWellKnown(field.message) !== undefined) return [];
    if (above.includes(field.message)) return [];
    const place = {
      prefix: `${name}.`,
      above: [...above, field.message],
      isRequired: must,
      takesMaps,
      ...(isFile && { isFile }),
    };
    return queryOf(field.message, below ?? new Map(), place, schemas);
  });
}

function describeQueryParameter(name: string, field: DescField, must: boolean, schemas: Schemas): OpenApiParameter {
  const description = schemas.commentOf(field);
  return {
    name,
    in: "query",
    ...(must && { required: true }),
    ...(field.deprecated && { deprecated: true }),
    ...(description !== undefined && { description }),
    // By default a list is written as `a=1&a=2` (§4.8.12.2.1: style `form`, exploded).
    schema: schemas.ofParameter(field),
  };
}

/** Returns the schema of a form: an object whose members have the names of {@link describeQuery}, and are not in maps. */
export function describeForm({ message, bound }: FormPlace, schemas: Schemas): OpenApiSchema {
  return objectOf(describeQuery(message, bound, schemas, false));
}

/** Returns the schema of a form with parts, one of which may be a file: as {@link describeForm} does. */
export function describeParts(place: PartsPlace, schemas: Schemas): OpenApiSchema {
  const { message, bound, file } = place;
  if (file === "whole") return { type: "object", properties: { file: fileSchema } };
  const isFile = (field: DescField): boolean => isFileOf(place, field);
  const start = { prefix: "", above: [message], isRequired: true, takesMaps: false, isFile };
  return objectOf(queryOf(message, bound, start, schemas));
}

// Generators of clients know files by the format, OpenAPI 3.1 §4.8.14.3 by the media type.
const fileSchema: OpenApiSchema = { type: "string", format: "binary", contentMediaType: "application/octet-stream" };

function objectOf(fields: readonly OpenApiParameter[]): OpenApiSchema {
  const required = fields.filter((field) => field.required === true).map(({ name }) => name);
  return {
    type: "object",
    properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    ...(required.length > 0 && { required }),
  };
}
