import type { DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { integerRangeOf } from "../messages/json/index.ts";
import type { OpenApiSchema } from "./open-api-document.ts";

/**
 * Where a value appears. A 64-bit integer is a string in JSON, but is described as an integer in a parameter, where all
 * values are text.
 */
export type ValuePlace = "json" | "parameter";

/**
 * Returns the schema of a scalar as the proto3 JSON mapping writes it, with formats of the OpenAPI format registry.
 *
 * @param int64Numbers - whether a 64-bit integer in JSON is a number if a double can represent it exactly
 */
export function schemaOfScalar(scalar: ScalarType, place: ValuePlace, int64Numbers: boolean): OpenApiSchema {
  const range = integerRangeOf(scalar);
  if (range !== undefined) {
    const { name: format, min, big } = range;
    if (big && place === "json") {
      const type = int64Numbers ? ["integer", "string"] : "string";
      return { type, format, pattern: min === 0n ? canonical : canonicalSigned };
    }
    return { type: "integer", format, ...(min === 0n && { minimum: 0 }) };
  }
  switch (scalar) {
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    case ScalarType.FLOAT:
      return { type: "number", format: "float" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    default:
      return { type: "string" };
  }
}

const canonical = "^(0|[1-9][0-9]*)$";
const canonicalSigned = "^(0|-?[1-9][0-9]*)$";

const anything: OpenApiSchema = {};

// Requests may also contain names that have no JSON form (see `parseFieldMask`): unchanged if they have an underscore,
// otherwise in backticks.
const maskPath = ["\\*", "[A-Za-z_][A-Za-z0-9_]*", "`[A-Za-z_][A-Za-z0-9_]*`"].join("|");
const mask = `^((${maskPath})([.,](${maskPath}))*)?$`;

/** The well-known types with their own JSON form, except for wrappers, which are described as their scalar. */
const wellKnownSchemas: Readonly<Record<string, OpenApiSchema>> = {
  "google.protobuf.Any": {
    type: "object",
    properties: { "@type": { type: "string", description: "URL of the type of the message." } },
    required: ["@type"],
    additionalProperties: true,
  },
  "google.protobuf.Duration": { type: "string", pattern: "^-?[0-9]+(\\.[0-9]{1,9})?s$" },
  "google.protobuf.Empty": { type: "object" },
  "google.protobuf.FieldMask": { type: "string", pattern: mask, description: "Field paths, separated by commas." },
  "google.protobuf.ListValue": { type: "array", items: anything },
  "google.protobuf.Struct": { type: "object", additionalProperties: true },
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Value": anything,
};

/** Returns the schema of a well-known type with its own JSON form, except for wrappers; `undefined` for other types. */
export function schemaOfWellKnown(desc: DescMessage): OpenApiSchema | undefined {
  return wellKnownSchemas[desc.typeName];
}
