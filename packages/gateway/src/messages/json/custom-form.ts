import type { DescMessage } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/**
 * Returns whether the JSON mapping gives a type a form of its own, such as text for a Timestamp, which is under
 * `value` in an Any.
 *
 * The function of this name in protobuf-es came with 2.12.
 */
export function hasCustomJsonRepresentation(desc: DescMessage): boolean {
  return customTypes.has(desc.typeName) || isWrapperDesc(desc);
}

const customTypes: ReadonlySet<string> = new Set(
  ["Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value"].map(
    (name) => `google.protobuf.${name}`,
  ),
);
