import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { memoize } from "../codegen.ts";

/** A message's field layouts, by field number. */
type Layout = ReadonlyMap<number, FieldLayout>;

/** The encodings that a field may have. */
interface FieldLayout {
  /** The wire types that the field may have, as a bit set. */
  readonly wireTypes: number;
  /** The wire type of a single value in a packed list. `undefined` if the field cannot be packed. */
  readonly packed: WireType | undefined;
  /** Returns the layout of a message or a map entry. The member is a function, because messages may be recursive. */
  readonly contentLayout: (() => Layout) | undefined;
}

/**
 * Returns whether an encoded message has only wire types that the definition allows. Nested messages and packed lists
 * must also end exactly at their length.
 *
 * protobuf-es checks only field numbers. If the client's definition has a string where ours has an int64, protobuf-es
 * reads the string's length as the number, and the string's characters as further fields. For example, "88" becomes 2.
 */
export function hasDeclaredWireTypes(desc: DescMessage, bytes: Uint8Array): boolean {
  return isAsDeclared(new BinaryReader(bytes), layoutOf(desc), bytes.byteLength, undefined);
}

/** @param group - the field number of the enclosing group, if any */
function isAsDeclared(reader: BinaryReader, layout: Layout, end: number, group: number | undefined): boolean {
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (wireType === WireType.EndGroup) return number === group;
    const field = layout.get(number);
    if (field === undefined) reader.skip(wireType, number);
    else if ((field.wireTypes & (1 << wireType)) === 0) return false;
    else if (wireType === WireType.StartGroup && field.contentLayout !== undefined) {
      if (!isAsDeclared(reader, field.contentLayout(), end, number)) return false;
    } else if (wireType !== WireType.LengthDelimited) reader.skip(wireType, number);
    else if (!isInsideAsDeclared(reader, field)) return false;
  }
  return group === undefined && reader.pos === end;
}

/** Skips a length-delimited value, and returns whether its content has the declared wire types. */
function isInsideAsDeclared(reader: BinaryReader, { contentLayout, packed }: FieldLayout): boolean {
  const start = reader.pos;
  const length = reader.uint32();
  if (contentLayout !== undefined) return isAsDeclared(reader, contentLayout(), reader.pos + length, undefined);
  reader.pos = start;
  const lastByte = reader.skip(WireType.LengthDelimited).at(-1) ?? 0;
  if (packed === undefined) return true;
  return packed === WireType.Varint ? lastByte < 0x80 : length % (packed === WireType.Bit64 ? 8 : 4) === 0;
}

const layoutOf = memoize(
  (desc: DescMessage): Layout => new Map(desc.fields.map((field) => [field.number, fieldLayoutOf(field)])),
);

function fieldLayoutOf(field: DescField): FieldLayout {
  if (field.fieldKind === "map") {
    const key: FieldLayout = { wireTypes: 1 << wireTypeOf(field.mapKey), packed: undefined, contentLayout: undefined };
    // An entry is a message with key = 1 and value = 2 (protobuf.dev, "Maps").
    const entry: Layout = new Map([
      [1, key],
      [2, valueLayoutOf(field)],
    ]);
    return { wireTypes: 1 << WireType.LengthDelimited, packed: undefined, contentLayout: () => entry };
  }
  const value = valueLayoutOf(field);
  if (field.fieldKind !== "list" || field.listKind === "message") return value;
  const wireType = wireTypeOf(scalarOf(field));
  if (wireType === WireType.LengthDelimited) return value;
  // Parsers accept packed and unpacked values, regardless of the declaration.
  return { ...value, wireTypes: value.wireTypes | (1 << WireType.LengthDelimited), packed: wireType };
}

/** Returns the layout of one field value, repeated or not. */
function valueLayoutOf(field: DescField): FieldLayout {
  const { message } = field;
  if (message === undefined)
    return { wireTypes: 1 << wireTypeOf(scalarOf(field)), packed: undefined, contentLayout: undefined };
  return {
    wireTypes: 1 << (field.delimitedEncoding ? WireType.StartGroup : WireType.LengthDelimited),
    packed: undefined,
    contentLayout: () => layoutOf(message),
  };
}

/** Returns a scalar's wire type (protobuf.dev, "Message Structure"). An enum is an int32. */
export function wireTypeOf(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
    case ScalarType.FLOAT:
      return WireType.Bit32;
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
    case ScalarType.DOUBLE:
      return WireType.Bit64;
    default:
      return WireType.Varint;
  }
}

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
