import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/** A field whose values are messages. */
export type MessageField = DescField & { readonly message: DescMessage };

/** Returns how a value of a field, or of a map, is written; an enum is an int32. */
export function scalarOf({ scalar }: DescField): ScalarType {
  return scalar ?? ScalarType.INT32;
}

/** Returns how a message of a field is written: behind its length, or as a group. */
export function messageWireType(field: MessageField): WireType.LengthDelimited | WireType.StartGroup {
  return field.delimitedEncoding ? WireType.StartGroup : WireType.LengthDelimited;
}

/** Whether protobuf-es has a google.protobuf.Struct of the field as the object that it stands for. */
export function isKeptAsJson({ message, parent }: DescField): boolean {
  return message?.typeName === "google.protobuf.Struct" && parent?.typeName !== "google.protobuf.Value";
}

/** Whether protobuf-es has a message of google/protobuf/wrappers.proto as the value that it holds. */
export function isWrapped({ fieldKind, message, oneof }: DescField): boolean {
  return fieldKind === "message" && oneof === undefined && isWrapperDesc(message);
}
