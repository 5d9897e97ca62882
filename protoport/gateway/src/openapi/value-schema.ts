import type { DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { integerRangeOf } from "../protobuf/index.ts";
import type { OpenApiSchema } from "./open-api-document.ts";
import {
  base64Pattern,
  durationPattern,
  fieldMaskPattern,
  integerPattern,
  urlFieldMaskPattern,
} from "./text-patterns.ts";

/** A value's location. A 64-bit integer is a string in JSON, but an integer in a parameter. */
export type ValuePlace = "json" | "parameter";

/**
 * Returns the schema for a scalar in the proto3 JSON mapping. Formats come from the OpenAPI format registry. With
 * `int64Numbers`, a 64-bit integer in JSON is a number if a double can represent it exactly.
 */
export function schemaOfScalar(scalar: ScalarType, place: ValuePlace, int64Numbers: boolean): OpenApiSchema {
  const range = integerRangeOf(scalar);
  if (range !== undefined) {
    const { name: format, min, max, isBigInt } = range;
    if (isBigInt && place === "json") {
      const type = int64Numbers ? ["integer", "string"] : "string";
      return { type, format, pattern: integerPattern(range) };
    }
    // Tools know the ranges of int32 and int64 from the format.
    if (min < 0n) return { type: "integer", format };
    return { type: "integer", format, minimum: 0, maximum: isBigInt ? uint64Max : Number(max) };
  }
  switch (scalar) {
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    case ScalarType.FLOAT:
      return { type: "number", format: "float", minimum: -floatMax, maximum: floatMax };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64", pattern: base64Pattern };
    default:
      return { type: "string" };
  }
}

/** The largest double below 2^64. The maximum uint64 would be rounded up to 2^64. */
const uint64Max = 18_446_744_073_709_549_568;

/** The largest finite 32-bit float, with as few digits as JSON requires. */
const floatMax = 3.4028235e38;

/** Returns the schema for a map's keys in JSON, or `undefined` if every string is a valid key. */
export function schemaOfMapKeys(key: ScalarType): OpenApiSchema | undefined {
  const range = integerRangeOf(key);
  if (range !== undefined) return { pattern: integerPattern(range) };
  return key === ScalarType.BOOL ? { enum: ["true", "false"] } : undefined;
}

const anySchema: OpenApiSchema = {};

function fieldMask(pattern: string): OpenApiSchema {
  return { type: "string", pattern, description: "Field paths, separated by commas." };
}

/** Schemas for well-known types with their own JSON form, except wrappers. Wrappers are described as scalars. */
const wellKnownSchemas: Readonly<Record<string, OpenApiSchema>> = {
  "google.protobuf.Any": {
    type: "object",
    properties: { "@type": { type: "string", description: "URL of the type of the message." } },
    required: ["@type"],
    additionalProperties: true,
  },
  "google.protobuf.Duration": { type: "string", pattern: durationPattern },
  "google.protobuf.Empty": { type: "object" },
  "google.protobuf.FieldMask": fieldMask(fieldMaskPattern),
  "google.protobuf.ListValue": { type: "array", items: anySchema },
  "google.protobuf.Struct": { type: "object", additionalProperties: true },
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Value": anySchema,
};

/** Returns the schema for a well-known type with its own JSON form, or `undefined` for wrappers and other types. */
export function schemaOfWellKnown(desc: DescMessage, place: ValuePlace = "json"): OpenApiSchema | undefined {
  if (desc.typeName === "google.protobuf.FieldMask" && place === "parameter") return fieldMask(urlFieldMaskPattern);
  return wellKnownSchemas[desc.typeName];
}
