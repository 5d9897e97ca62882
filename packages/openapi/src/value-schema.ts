import type { DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { integerRangeOf } from "@plantstore/protobuf";
import type { OpenApiSchema } from "./open-api-document.ts";
import {
  base64Pattern,
  durationPattern,
  fieldMaskPattern,
  integerPattern,
  urlFieldMaskPattern,
} from "./text-patterns.ts";

/**
 * Where a value appears. A 64-bit integer is a string in JSON, but is described as an integer in a parameter, where all
 * values are text.
 */
export type ValuePlace = "json" | "parameter";

/**
 * Returns a scalar's schema as the proto3 JSON mapping writes it, with formats from the OpenAPI format registry.
 *
 * @param int64Numbers - whether a 64-bit integer in JSON is a number if a double can represent it exactly
 */
export function schemaOfScalar(scalar: ScalarType, place: ValuePlace, int64Numbers: boolean): OpenApiSchema {
  const range = integerRangeOf(scalar);
  if (range !== undefined) {
    const { name: format, min, max, isBigInt } = range;
    if (isBigInt && place === "json") {
      const type = int64Numbers ? ["integer", "string"] : "string";
      return { type, format, pattern: integerPattern(range) };
    }
    // Tools know the int32 and int64 ranges by their formats.
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

/** The largest double below 2^64, because the maximum itself would be rounded up. */
const uint64Max = 18_446_744_073_709_549_568;

/** The largest finite 32-bit float as JSON writes it, in the fewest digits. */
const floatMax = 3.4028235e38;

/** Returns the schema for a map's keys, which are strings in JSON, or `undefined` if every string is a key. */
export function schemaOfMapKeys(key: ScalarType): OpenApiSchema | undefined {
  const range = integerRangeOf(key);
  if (range !== undefined) return { pattern: integerPattern(range) };
  return key === ScalarType.BOOL ? { enum: ["true", "false"] } : undefined;
}

const anySchema: OpenApiSchema = {};

function fieldMask(pattern: string): OpenApiSchema {
  return { type: "string", pattern, description: "Field paths, separated by commas." };
}

/** The well-known types with their own JSON form, except for wrappers, which are described as their scalar. */
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

/** Returns a well-known type's schema with its own JSON form, except for wrappers, or `undefined` for other types. */
export function schemaOfWellKnown(desc: DescMessage, place: ValuePlace = "json"): OpenApiSchema | undefined {
  if (desc.typeName === "google.protobuf.FieldMask" && place === "parameter") return fieldMask(urlFieldMaskPattern);
  return wellKnownSchemas[desc.typeName];
}
