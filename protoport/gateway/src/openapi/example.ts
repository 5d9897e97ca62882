import type { DescEnum, DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { type BoundFields, integerRangeOf } from "../protobuf/index.ts";
import { FieldBudget, maxExampleFields } from "./field-budget.ts";
import { isRequired } from "./field-behavior.ts";
import { fieldFormatOf } from "./field-format.ts";
import type { FieldRules } from "./field-rules.ts";

/** Maximum nesting depth in an example, enough to show the structure. Required messages may be deeper. */
const maxDepth = 3;

/** Returns the name that a field has in JSON. */
type NameOf = (field: DescField) => string;

interface ExampleOptions {
  readonly nameOf: NameOf;
  /** The fields that the path sets, which the example omits. */
  readonly boundByPath?: BoundFields | undefined;
  /** The document's budget for the fields of nested messages. */
  readonly total: FieldBudget;
  /** The rules that the values must satisfy. */
  readonly rules?: FieldRules | undefined;
}

/**
 * Creates an example message as JSON that the gateway accepts. The example has each oneof's first member, one element
 * in each list, no recursive messages, and no field that the path sets. The depth is reduced until all nested messages
 * have at most `maxExampleFields` fields.
 *
 * @returns `undefined` if a required field has no example, or `"too large"` if the required fields exceed the limit
 */
export function createExample(desc: DescMessage, options: ExampleOptions): JsonObject | "too large" | undefined {
  const deepest = exampleOfDepth(desc, maxDepth, options);
  if (deepest !== "too large") return deepest;
  let largestExample = exampleOfDepth(desc, 0, options);
  for (let depth = 1; largestExample !== "too large" && depth < maxDepth; depth += 1) {
    const deeper = exampleOfDepth(desc, depth, options);
    if (deeper === "too large") break;
    largestExample = deeper;
  }
  return largestExample;
}

function exampleOfDepth(
  desc: DescMessage,
  depth: number,
  { nameOf, boundByPath, total, rules }: ExampleOptions,
): JsonObject | "too large" | undefined {
  const nested = new FieldBudget(maxExampleFields);
  const example = exampleOfFields(
    desc,
    { nameOf, nested, depth, enclosingMessages: new Set([desc]), rules },
    boundByPath,
  );
  return nested.isExceeded || !total.reserve(nested.usedFields) ? "too large" : example;
}

interface ExampleContext {
  readonly nameOf: NameOf;
  readonly nested: FieldBudget;
  /** Maximum number of nested message levels that are shown. */
  readonly depth: number;
  /** The types of this message and of all messages around it. */
  readonly enclosingMessages: Set<DescMessage>;
  readonly rules: FieldRules | undefined;
}

function exampleOfFields(
  desc: DescMessage,
  context: ExampleContext,
  boundByPath: BoundFields = new Map(),
): JsonObject | undefined {
  const { nameOf, nested, enclosingMessages, rules } = context;
  const example: [string, JsonValue][] = [];
  for (const field of desc.fields) {
    const nestedBound = boundByPath.get(field);
    const isLaterMember = field.oneof !== undefined && field.oneof.fields[0] !== field;
    if (nestedBound === "whole" || isLaterMember) continue;
    const name = nameOf(field);
    if (enclosingMessages.size > 1 && !nested.takeField(name)) return undefined;
    const value = exampleOfField(field, context, nestedBound);
    if (value !== undefined) example.push([name, value]);
    else if (isRequired(field) || rules?.isRequired(field) === true || nested.isExceeded) return undefined;
  }
  return Object.fromEntries(example);
}

function exampleOfField(
  field: DescField,
  context: ExampleContext,
  boundByPath: BoundFields | undefined,
): JsonValue | undefined {
  const element = exampleOfElement(field, context, boundByPath);
  if (element === undefined) return undefined;
  if (field.fieldKind === "list") return [element];
  return field.fieldKind === "map" ? { [String(exampleOfScalar(field.mapKey))]: element } : element;
}

function exampleOfElement(
  field: DescField,
  context: ExampleContext,
  boundByPath: BoundFields | undefined,
): JsonValue | undefined {
  const { message } = field;
  const ofRules = context.rules?.exampleOf(field);
  if (ofRules !== undefined) return ofRules[0];
  const format = fieldFormatOf(field);
  if (format !== undefined) return format.example;
  if (field.enum !== undefined) return exampleOfEnum(field.enum);
  if (message === undefined) return exampleOfScalar(field.scalar);
  if (isWrapperDesc(message)) return exampleOfScalar(message.fields[0].scalar);
  if (message.typeName in wellKnownExamples) return wellKnownExamples[message.typeName];
  const { enclosingMessages, depth } = context;
  if (enclosingMessages.has(message) || (enclosingMessages.size > depth && !isRequired(field))) return undefined;
  enclosingMessages.add(message);
  const example = exampleOfFields(message, context, boundByPath);
  enclosingMessages.delete(message);
  return example;
}

function exampleOfEnum({ typeName, values }: DescEnum): JsonValue | undefined {
  if (typeName === "google.protobuf.NullValue") return null;
  // An enum's first value usually means "unspecified".
  return (values[1] ?? values[0])?.name;
}

function exampleOfScalar(scalar: ScalarType): string | number | boolean {
  const range = integerRangeOf(scalar);
  if (range !== undefined) return range.isBigInt ? "7" : 7;
  switch (scalar) {
    case ScalarType.BOOL:
      return true;
    case ScalarType.BYTES:
      return "dGV4dA==";
    case ScalarType.STRING:
      return "text";
    default:
      return 1.5;
  }
}

// `Any` has no example, because the definition does not specify the contained types.
const wellKnownExamples: Readonly<Record<string, JsonValue | undefined>> = {
  "google.protobuf.Any": undefined,
  "google.protobuf.Duration": "1.5s",
  "google.protobuf.Empty": {},
  "google.protobuf.FieldMask": "name",
  "google.protobuf.ListValue": ["text"],
  "google.protobuf.Struct": { key: "text" },
  "google.protobuf.Timestamp": "2026-01-31T12:00:00Z",
  "google.protobuf.Value": "text",
};
