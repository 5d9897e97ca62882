import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** Returns the field of `type` with the same number as `field`, or otherwise the field with the same name. */
export function counterpartOf(field: DescField, type: DescMessage): DescField | undefined {
  return (
    type.fields.find(({ number }) => number === field.number) ?? type.fields.find(({ name }) => name === field.name)
  );
}

/** How many values a field has. */
export type Cardinality = "singular" | "repeated" | "map";

/** Returns how many values a field has. */
export function cardinalityOf({ fieldKind }: DescField): Cardinality {
  if (fieldKind === "list") return "repeated";
  return fieldKind === "map" ? "map" : "singular";
}

/**
 * Returns the type name for a field or its elements. Without special JSON, enums have the name `enum`, and messages
 * have the name `message` or `delimited message`.
 */
export function typeOf(field: DescField): string {
  const key = field.fieldKind === "map" ? `map<${scalarName(field.mapKey)}, ` : "";
  const value = field.scalar !== undefined ? scalarName(field.scalar) : namedTypeOf(field);
  return key === "" ? value : `${key}${value}>`;
}

// Messages without special JSON are compared by their fields, and enums by their values.
function namedTypeOf(field: DescField): string {
  const name = field.message?.typeName ?? field.enum?.typeName ?? "";
  if (hasSpecialJson(name)) return name;
  if (field.message === undefined) return "enum";
  return "delimitedEncoding" in field && field.delimitedEncoding ? "delimited message" : "message";
}

function scalarName(scalar: ScalarType): string {
  return (ScalarType[scalar] ?? "").toLowerCase();
}

/** Returns whether a message without the field is invalid, as with `required` in proto2. */
export function isPresenceRequired({ presence }: DescField): boolean {
  return presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
}

/** Returns whether a message distinguishes a default value from no value. */
export function hasPresence({ presence }: DescField): boolean {
  return presence !== FeatureSet_FieldPresence.IMPLICIT;
}

/** Returns whether a type has a special JSON representation. `Empty` is written like any message without fields. */
export function hasSpecialJson(typeName: string): boolean {
  if (typeName === "google.api.HttpBody") return true;
  return typeName.startsWith("google.protobuf.") && typeName !== "google.protobuf.Empty";
}
