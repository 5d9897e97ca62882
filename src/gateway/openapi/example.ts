import type { DescEnum, DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { type BoundFields, integerRangeOf } from "../json/index.ts";
import { isRequired } from "./field-behavior.ts";

// How deep messages inside messages are shown, unless they are required: enough to see their form, and a tree of many
// branches stays short.
const depthMax = 3;

/** Returns the name of a field in JSON. */
type NameOf = (field: DescField) => string;

/**
 * Creates an example of a message as JSON that the gateway accepts: the first member of each oneof, one element of each
 * list, no message inside itself, and no field that the path sets. `undefined` for a message that must have a field of
 * which there is no example.
 */
export function createExample(desc: DescMessage, nameOf: NameOf, boundByPath?: BoundFields): JsonObject | undefined {
  return exampleOfFields(desc, nameOf, [desc], boundByPath);
}

function exampleOfFields(
  desc: DescMessage,
  nameOf: NameOf,
  above: readonly DescMessage[],
  boundByPath: BoundFields = new Map(),
): JsonObject | undefined {
  const example: Record<string, JsonValue> = {};
  for (const field of desc.fields) {
    const below = boundByPath.get(field);
    if (below === "whole" || isLaterMember(field)) continue;
    const value = exampleOfField(field, nameOf, above, below);
    if (value !== undefined) example[nameOf(field)] = value;
    else if (isRequired(field)) return undefined;
  }
  return example;
}

function isLaterMember(field: DescField): boolean {
  return field.oneof !== undefined && field.oneof.fields[0] !== field;
}

function exampleOfField(
  field: DescField,
  nameOf: NameOf,
  above: readonly DescMessage[],
  boundByPath: BoundFields | undefined,
): JsonValue | undefined {
  const element = exampleOfElement(field, nameOf, above, boundByPath);
  if (element === undefined) return undefined;
  if (field.fieldKind === "list") return [element];
  return field.fieldKind === "map" ? { [String(exampleOfScalar(field.mapKey))]: element } : element;
}

function exampleOfElement(
  field: DescField,
  nameOf: NameOf,
  above: readonly DescMessage[],
  boundByPath: BoundFields | undefined,
): JsonValue | undefined {
  const { message } = field;
  if (field.enum !== undefined) return exampleOfEnum(field.enum);
  if (message === undefined) return exampleOfScalar(field.scalar);
  if (isWrapperDesc(message)) return exampleOfScalar(message.fields[0].scalar);
  if (message.typeName in wellKnownExamples) return wellKnownExamples[message.typeName];
  if (above.includes(message) || (above.length > depthMax && !isRequired(field))) return undefined;
  return exampleOfFields(message, nameOf, [...above, message], boundByPath);
}

function exampleOfEnum({ typeName, values }: DescEnum): JsonValue | undefined {
  if (typeName === "google.protobuf.NullValue") return null;
  // The first value usually means that nothing was chosen.
  return (values[1] ?? values[0])?.name;
}

function exampleOfScalar(scalar: ScalarType): string | number | boolean {
  const range = integerRangeOf(scalar);
  if (range !== undefined) return range.big ? "7" : 7;
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

// Any has none, because the definition does not say which types it may hold.
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
