import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { cleanText } from "./clean-text.ts";
import type { Comments } from "./comments.ts";
import type { FieldRules } from "./field-rules.ts";
import type { OpenApiSchema } from "./open-api-document.ts";
import { Schemas } from "./schemas.ts";

/** Options of {@link createMessageSchema}. */
export interface MessageSchemaOptions {
  readonly comments: Comments;
  readonly useProtoFieldName: boolean;
  /** The rules of fields that the server checks. */
  readonly rules?: FieldRules | undefined;
  /** Whether the schema describes messages that clients send, or those that they receive. */
  readonly direction: "input" | "output";
}

/** The most messages and enums in a schema. 200: Google's largest requests have 150. */
const definitionsMax = 200;

/** The most characters of the description of a field, a message or an enum. */
const descriptionMax = 1_000;

/**
 * Creates a JSON Schema (2020-12) that does not depend on a document: other messages and enums are in `$defs`.
 *
 * @param place - returns the root for the schema of the message, for example an object that contains it
 */
export function createMessageSchema(
  desc: DescMessage,
  { direction, ...options }: MessageSchemaOptions,
  place: (schema: JsonObject) => JsonObject,
): JsonObject {
  const fixed = { int64Numbers: false, abridged: none, closed: none, referencePrefix: "#/$defs/" };
  const schemas = new Schemas({ ...options, ...fixed });
  const whole = schemas.ofMessage(desc);
  // The root is described inline, because a reference has no type.
  const root = "$ref" in whole ? schemas.ofObject(desc) : whole;
  const steps = schemas.components();
  for (let count = 0; ; count += 1) {
    const { done, value: definitions } = steps.next();
    if (count > definitionsMax) return { type: "object", description: tooLarge };
    if (done !== true) continue;
    const refined = place(refine(root, direction));
    const entries = Object.entries(definitions).map(([name, schema]) => [name, refine(schema, direction)] as const);
    // The definition of the root is needed only if another message refers to it.
    const text = JSON.stringify([refined, entries]);
    const used = entries.filter(([name]) => text.includes(JSON.stringify(`#/$defs/${name}`)));
    return used.length === 0 ? refined : { ...refined, $defs: Object.fromEntries(used) };
  }
}

const none: ReadonlySet<DescMessage> = new Set();

const tooLarge = `The schema is left out: it would have more than ${definitionsMax} definitions.`;

/**
 * Adapts a schema to one direction: leaves out fields that only the other direction sets. An output is valid whatever the handler returns: with unknown enum values, infinite numbers, and without required
 * fields.
 */
function refine(schema: OpenApiSchema, direction: "input" | "output"): JsonObject {
  const refined: Record<string, JsonValue> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === "properties") refined[keyword] = refineProperties(value, direction);
    else if (keyword === "items" || keyword === "additionalProperties") refined[keyword] = refineAny(value, direction);
    else if (typeof value === "string" && keyword === "description")
      refined[keyword] = cleanText(value, descriptionMax);
    else if (!isOmitted(keyword, value, direction)) refined[keyword] = value;
  }
  if (direction === "input") return refined;
  // Not an array of types, which some clients do not support.
  const { description, deprecated, ...value } = refined;
  const notes = { ...(description !== undefined && { description }), ...(deprecated !== undefined && { deprecated }) };
  if (schema["type"] === "number") return { ...notes, anyOf: [value, notFinite] };
  return schema["enum"] === undefined ? refined : { ...notes, anyOf: [value, { type: "integer" }] };
}

const notFinite: JsonObject = { type: "string", enum: ["NaN", "Infinity", "-Infinity"] };

/** Examples would repeat the schema. The formats of numbers are unknown to most validators. */
function isOmitted(keyword: string, value: JsonValue, direction: "input" | "output"): boolean {
  if (keyword === "format") return value !== "date-time";
  return ["examples", "readOnly", "writeOnly"].includes(keyword) || (keyword === "required" && direction === "output");
}

function refineProperties(properties: JsonValue, direction: "input" | "output"): JsonObject {
  const excluded = direction === "input" ? "readOnly" : "writeOnly";
  const kept = Object.entries(asObject(properties)).filter(([, schema]) => asObject(schema)[excluded] !== true);
  return Object.fromEntries(kept.map(([name, schema]) => [name, refineAny(schema, direction)]));
}

function refineAny(schema: JsonValue, direction: "input" | "output"): JsonValue {
  return typeof schema === "boolean" ? schema : refine(asObject(schema), direction);
}

function asObject(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
