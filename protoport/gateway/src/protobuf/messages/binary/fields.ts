import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/** A field with message values. */
export type MessageField = DescField & { readonly message: DescMessage };

/** Returns the scalar type of the values in a field or map. An enum is an int32. */
export function scalarOf({ scalar }: DescField): ScalarType {
  return scalar ?? ScalarType.INT32;
}

/** Returns a message field's wire type, which is length-delimited or a group. */
export function messageWireType(field: MessageField): WireType.LengthDelimited | WireType.StartGroup {
  return field.delimitedEncoding ? WireType.StartGroup : WireType.LengthDelimited;
}

/** Returns whether a field is a google.protobuf.Struct that protobuf-es stores as a plain object. */
export function isKeptAsJson({ message, parent }: DescField): boolean {
  return message?.typeName === "google.protobuf.Struct" && parent?.typeName !== "google.protobuf.Value";
}

/** Returns whether a field is a wrapper (google/protobuf/wrappers.proto) that protobuf-es stores as its bare value. */
export function isWrapped({ fieldKind, message, oneof }: DescField): boolean {
  return fieldKind === "message" && oneof === undefined && isWrapperDesc(message);
}
