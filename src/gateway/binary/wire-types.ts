import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** The fields of a message by number. */
type Layout = ReadonlyMap<number, FieldLayout>;

/** How a field may be written in the bytes of its message. */
interface FieldLayout {
  /** The wire types that it may have, one bit for each. */
  readonly wireTypes: number;
  /** The layout of its contents, if it is a message or a map entry. A function, as messages may contain themselves. */
  readonly inside: (() => Layout) | undefined;
}

/**
 * Returns whether every field of an encoded message has a wire type that its definition allows, and every message
 * inside it ends where its length says.
 *
 * protobuf-es looks only at field numbers. If a client's definition has a string where ours has an int64, it reads the
 * length of the string as the number, and its text as further fields: "88" becomes 2. Contents of groups are unchecked.
 */
export function hasDeclaredWireTypes(desc: DescMessage, bytes: Uint8Array): boolean {
  return isAsDeclared(new BinaryReader(bytes), layoutOf(desc), bytes.byteLength);
}

function isAsDeclared(reader: BinaryReader, layout: Layout, end: number): boolean {
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const field = layout.get(number);
    if (field !== undefined && (field.wireTypes & (1 << wireType)) === 0) return false;
    if (field?.inside === undefined || wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
      continue;
    }
    const length = reader.uint32();
    if (!isAsDeclared(reader, field.inside(), reader.pos + length)) return false;
  }
  return reader.pos === end;
}

const layouts = new WeakMap<DescMessage, Layout>();

function layoutOf(desc: DescMessage): Layout {
  let layout = layouts.get(desc);
  if (layout === undefined) {
    layout = new Map(desc.fields.map((field) => [field.number, fieldLayoutOf(field)]));
    layouts.set(desc, layout);
  }
  return layout;
}

function fieldLayoutOf(field: DescField): FieldLayout {
  if (field.fieldKind === "map") {
    const key: FieldLayout = { wireTypes: 1 << wireTypeOf(field.mapKey), inside: undefined };
    // protobuf.dev, "Maps": an entry is a message of key = 1 and value = 2.
    const entry: Layout = new Map([
      [1, key],
      [2, valueLayoutOf(field)],
    ]);
    return { wireTypes: 1 << WireType.LengthDelimited, inside: () => entry };
  }
  const value = valueLayoutOf(field);
  // Packed or not, whatever was declared: parsers accept both. Length-delimited types are never packed.
  return field.fieldKind === "list" && field.listKind !== "message"
    ? { ...value, wireTypes: value.wireTypes | (1 << WireType.LengthDelimited) }
    : value;
}

/** Returns the layout of one value of a field, repeated or not. */
function valueLayoutOf(field: DescField): FieldLayout {
  const { message, scalar } = field;
  if (message === undefined) return { wireTypes: 1 << wireTypeOf(scalar ?? ScalarType.INT32), inside: undefined };
  const isGroup = "delimitedEncoding" in field && field.delimitedEncoding;
  return {
    wireTypes: 1 << (isGroup ? WireType.StartGroup : WireType.LengthDelimited),
    inside: () => layoutOf(message),
  };
}

/** Returns how a value is written (protobuf.dev, "Message Structure"); an enum is an int32. */
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
