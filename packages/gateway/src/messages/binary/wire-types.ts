import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { oncePer } from "../codegen/index.ts";
import { scalarOf } from "./fields.ts";

/** The fields of a message by number. */
type Layout = ReadonlyMap<number, FieldLayout>;

/** How a field may be written in the bytes of its message. */
interface FieldLayout {
  /** The wire types that it may have, one bit for each. */
  readonly wireTypes: number;
  /** The wire type of each value, if they may be packed. */
  readonly packed: WireType | undefined;
  /** The layout of its contents, if it is a message or a map entry. A function, as messages may contain themselves. */
  readonly inside: (() => Layout) | undefined;
}

/**
 * Returns whether every field of an encoded message has a wire type that its definition allows, and every message and
 * packed list inside it ends where its length says.
 *
 * protobuf-es looks only at field numbers. If a client's definition has a string where ours has an int64, it reads the
 * length of the string as the number, and its text as further fields: "88" becomes 2.
 */
export function hasDeclaredWireTypes(desc: DescMessage, bytes: Uint8Array): boolean {
  return isAsDeclared(new BinaryReader(bytes), layoutOf(desc), bytes.byteLength, undefined);
}

/** @param group - the number of the group that these fields are in, which ends with them */
function isAsDeclared(reader: BinaryReader, layout: Layout, end: number, group: number | undefined): boolean {
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (wireType === WireType.EndGroup) return number === group;
    const field = layout.get(number);
    if (field === undefined) reader.skip(wireType, number);
    else if ((field.wireTypes & (1 << wireType)) === 0) return false;
    else if (wireType === WireType.StartGroup && field.inside !== undefined) {
      if (!isAsDeclared(reader, field.inside(), end, number)) return false;
    } else if (wireType !== WireType.LengthDelimited) reader.skip(wireType, number);
    else if (!isInsideAsDeclared(reader, field)) return false;
  }
  return group === undefined && reader.pos === end;
}

/** Goes on behind something that has a length, and returns whether its contents are as declared. */
function isInsideAsDeclared(reader: BinaryReader, { inside, packed }: FieldLayout): boolean {
  const start = reader.pos;
  const length = reader.uint32();
  if (inside !== undefined) return isAsDeclared(reader, inside(), reader.pos + length, undefined);
  reader.pos = start;
  const lastByte = reader.skip(WireType.LengthDelimited).at(-1) ?? 0;
  if (packed === undefined) return true;
  return packed === WireType.Varint ? lastByte < 0x80 : length % (packed === WireType.Bit64 ? 8 : 4) === 0;
}

const layoutOf = oncePer(
  (desc: DescMessage): Layout => new Map(desc.fields.map((field) => [field.number, fieldLayoutOf(field)])),
);

function fieldLayoutOf(field: DescField): FieldLayout {
  if (field.fieldKind === "map") {
    const key: FieldLayout = { wireTypes: 1 << wireTypeOf(field.mapKey), packed: undefined, inside: undefined };
    // protobuf.dev, "Maps": an entry is a message of key = 1 and value = 2.
    const entry: Layout = new Map([
      [1, key],
      [2, valueLayoutOf(field)],
    ]);
    return { wireTypes: 1 << WireType.LengthDelimited, packed: undefined, inside: () => entry };
  }
  const value = valueLayoutOf(field);
  if (field.fieldKind !== "list" || field.listKind === "message") return value;
  const wireType = wireTypeOf(scalarOf(field));
  if (wireType === WireType.LengthDelimited) return value;
  // Packed or not, whatever was declared: parsers accept both.
  return { ...value, wireTypes: value.wireTypes | (1 << WireType.LengthDelimited), packed: wireType };
}

/** Returns the layout of one value of a field, repeated or not. */
function valueLayoutOf(field: DescField): FieldLayout {
  const { message } = field;
  if (message === undefined)
    return { wireTypes: 1 << wireTypeOf(scalarOf(field)), packed: undefined, inside: undefined };
  return {
    wireTypes: 1 << (field.delimitedEncoding ? WireType.StartGroup : WireType.LengthDelimited),
    packed: undefined,
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
