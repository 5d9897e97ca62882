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
 * Returns a name for the type of a field or its elements. Returns only `enum`, `message` or `delimited message` for
 * types without special JSON, so that renaming a type is not a change.
 */
export function typeOf(field: DescField): string {
  const key = field.fieldKind === "map" ? `map<${scalarName(field.mapKey)}, ` : "";
  const value = field.scalar !== undefined ? scalarName(field.scalar) : namedTypeOf(field);
  return key === "" ? value : `${key}${value}>`;
}

// Only types with special JSON have a name. Others are compared by their fields or values.
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
