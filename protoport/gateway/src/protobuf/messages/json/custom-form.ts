import type { DescMessage } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/**
 * Returns whether a type has its own JSON form, such as a string for a Timestamp. In an Any, this form is the member
 * `value`. protobuf-es exports this function since 2.12.
 */
export function hasCustomJsonRepresentation(desc: DescMessage): boolean {
  return customTypes.has(desc.typeName) || isWrapperDesc(desc);
}

/** Returns whether a type's messages are always JSON objects. */
export function hasObjectForm(desc: DescMessage): boolean {
  const isKnown = desc.typeName === "google.protobuf.Any" || desc.typeName === "google.protobuf.Struct";
  return isKnown || !hasCustomJsonRepresentation(desc);
}

const customTypes: ReadonlySet<string> = new Set(
  ["Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value"].map(
    (name) => `google.protobuf.${name}`,
  ),
);
