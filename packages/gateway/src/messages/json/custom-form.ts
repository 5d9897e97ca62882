import type { DescMessage } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/**
 * Returns whether a type has its own JSON form, such as a string for a Timestamp, which an Any has under `value`.
 *
 * protobuf-es has a function of this name since 2.12.
 */
export function hasCustomJsonRepresentation(desc: DescMessage): boolean {
  return customTypes.has(desc.typeName) || isWrapperDesc(desc);
}

const customTypes: ReadonlySet<string> = new Set(
  ["Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value"].map(
    (name) => `google.protobuf.${name}`,
  ),
);
