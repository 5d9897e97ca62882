import type { DescMessage, DescMethod, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { runSteps } from "../http/index.ts";
import { hasObjectForm } from "../protobuf/index.ts";
import { cleanText, type Comments, commentsOf } from "./comments.ts";
import { FieldBudget } from "./field-budget.ts";
import type { FieldRules } from "./field-rules.ts";
import type { OpenApiSchema } from "./open-api-document.ts";
import { Schemas } from "./schemas.ts";

interface MessageSchemaOptions {
  readonly comments: Comments;
  readonly useProtoFieldName: boolean;
  /** The field rules that the server checks. */
  readonly rules?: FieldRules | undefined;
  /** Whether clients send the described messages (`"input"`) or receive them (`"output"`). */
  readonly direction: "input" | "output";
  /** Whether the schema refuses unknown fields. */
  readonly isClosed?: boolean | undefined;
  /** Whether the schema describes an array of messages. */
  readonly isStream?: boolean;
}

/**
 * Maximum number of message fields and enum values in a schema. 2,000 are more than a model can use. 100 characters in
 * names and comments count as one more field.
 */
const maxFields = 2_000;

/** Maximum characters in a schema. 2,000 fields with usual descriptions have 256 Ki characters. */
const maxSchemaLength = 256 * 1024;

/** Maximum characters in a field name. protoc has no limit, and real names have fewer than 100 characters. */
const maxSchemaNameLength = 200;

/** Maximum characters in a description for a field, a message or an enum. */
const maxSchemaDescription = 1_000;

interface MessageSchema {
  readonly schema: JsonObject;
  /** Whether fields or enum values are omitted. */
  readonly isTruncated: boolean;
  /** Number of fields and enum values that were described or omitted by name. */
  readonly fields: number;
}

/**
 * Creates a JSON Schema (2020-12) for an object. Other messages and enums are in `$defs`, so the schema does not refer
 * to a document. A message whose JSON is not an object is in the member `value`, and a stream's array in the member
 * `messages`. A schema that is too large for a model lacks the deepest fields, which clients can set, too.
 */
export function createMessageSchema(desc: DescMessage, options: MessageSchemaOptions): MessageSchema {
  // Lengths are only estimated at first. The second attempt usually fits.
  for (let budget = maxFields, fields = 0; ;) {
    const total = new FieldBudget(budget);
    const schema = describe(desc, total, options);
    fields += total.usedFields;
    const { length } = JSON.stringify(schema);
    if (length <= maxSchemaLength || budget === 0) return { schema, isTruncated: total.isExceeded, fields };
    budget = Math.floor(total.usedFields * Math.min(1 / 2, maxSchemaLength / length));
  }
}

/** Returns the RPCs whose tools would have input schemas that do not list all fields, with the definition's comments. */
export function withTruncatedInput(methods: readonly DescMethod[]): readonly DescMethod[] {
  const comments = runSteps(commentsOf(methods.map(({ parent }) => parent)));
  const style = { comments, useProtoFieldName: false, direction: "input" } as const;
  return methods.filter(({ input }) => createMessageSchema(input, style).isTruncated);
}

/** Returns a schema whose fields fit in a budget. */
function describe(
  desc: DescMessage,
  total: FieldBudget,
  { direction, isClosed = false, isStream = false, comments, ...options }: MessageSchemaOptions,
): JsonObject {
  const closed = { has: () => isClosed };
  const fixed = {
    int64Numbers: false,
    abridged: noMessages,
    closed,
    referencePrefix,
    total,
    hasExamples: false,
    isNameShown,
    // One long comment does not take the place of fields.
    comments: { get: (name: string) => comments.get(name)?.slice(0, maxSchemaDescription + 1) },
  };
  const schemas = new Schemas({ ...options, ...fixed });
  const whole = schemas.ofMessage(desc);
  const definitions = runSteps(schemas.components());
  // The root's definition replaces a reference to the root, because a reference has no `type`.
  const reference = whole["$ref"];
  const root = typeof reference === "string" ? definitions[reference.slice(referencePrefix.length)] : whole;
  const message = refine(root ?? whole, direction);
  const object = hasObjectForm(desc) ? message : objectOf("value", message, isClosed);
  const refined = isStream ? objectOf("messages", { type: "array", items: object }, isClosed) : object;
  const entries = Object.entries(definitions).map(([name, each]) => [name, refine(each, direction)] as const);
  const text = JSON.stringify([refined, entries]);
  // The root's definition is needed only if another message refers to it.
  const references = new Set(text.match(/"#\/\$defs\/(?:[^"\\]|\\.)*"/g));
  const used = entries.filter(([name]) => references.has(JSON.stringify(referencePrefix + name)));
  return used.length === 0 ? refined : { ...refined, $defs: Object.fromEntries(used) };
}

function objectOf(name: string, schema: JsonObject, isClosed: boolean): JsonObject {
  const closing = isClosed ? { additionalProperties: false } : {};
  return { type: "object", properties: { [name]: schema }, required: [name], ...closing };
}

const referencePrefix = "#/$defs/";

const noMessages: ReadonlySet<DescMessage> = new Set();

/** Returns whether a field name is short and has no invisible characters, so that it cannot hide text. */
function isNameShown(name: string): boolean {
  return name.length <= maxSchemaNameLength && cleanText(name, maxSchemaNameLength) === name;
}

/** Adapts a schema to one direction. Outputs may have unknown enum values and infinities, and lack required fields. */
function refine(schema: OpenApiSchema, direction: "input" | "output"): JsonObject {
  // The format `int32` is replaced by a range, because most validators do not know the format.
  const refined: Record<string, JsonValue> =
    schema["format"] === "int32" ? { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 } : {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === "properties") refined[keyword] = refineProperties(value, direction);
    else if (keyword === "items" || keyword === "additionalProperties") refined[keyword] = refineAny(value, direction);
    else if (typeof value === "string" && keyword === "description")
      refined[keyword] = cleanText(value, maxSchemaDescription);
    else if (!isOmitted(keyword, value, direction)) refined[keyword] = value;
  }
  if (direction === "input") return refined;
  // `anyOf` is used, because some clients do not support an array of types in `type`.
  const { description, deprecated, ...value } = refined;
  const notes = { ...(description !== undefined && { description }), ...(deprecated !== undefined && { deprecated }) };
  if (schema["type"] === "number") return { ...notes, anyOf: [value, notFinite] };
  return schema["enum"] === undefined ? refined : { ...notes, anyOf: [value, { type: "integer" }] };
}

const notFinite: JsonObject = { type: "string", enum: ["NaN", "Infinity", "-Infinity"] };

/** The string formats in input schemas. JSON Schema defines the formats (§7.3). */
const inputFormats: ReadonlySet<JsonValue> = new Set(["date-time", "ipv4", "ipv6", "uuid"]);

/**
 * Returns whether a keyword is omitted. Links are omitted, because their length is not limited. Number formats are
 * omitted, because most validators do not know them. For output, `google.api.field_info` formats, including an `anyOf`
 * of two formats, are omitted, because handlers can return other text.
 */
function isOmitted(keyword: string, value: JsonValue, direction: "input" | "output"): boolean {
  if (keyword === "format") return direction === "input" ? !inputFormats.has(value) : value !== "date-time";
  if (keyword === "anyOf") return direction === "output";
  return (
    ["externalDocs", "readOnly", "writeOnly"].includes(keyword) || (keyword === "required" && direction === "output")
  );
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
