import { type DescMessage, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";

/** Encodes a message in pieces that follow each other. Returns `undefined` if that brings nothing. */
export type EncodePieces = (message: Message) => readonly Uint8Array[] | undefined;

/** Bytes of a field from which on it is not copied. */
// 64 KiB: below, a piece and its frame cost as much as the copies.
const largeBytesMin = 64 * 1024;

/**
 * Creates the function that encodes a message with one large field of bytes, such as a part of a file, in two pieces:
 * everything else, and the bytes as they are. Returns `undefined` if messages of this type have no such field.
 *
 * The writer of protobuf-es doubles its buffer, zeroed, until all fits, and returns a copy of what it wrote: three
 * megabytes of memory for one of message, and each brings the next garbage collection nearer. The order of fields is
 * free (protobuf.dev, "Field Order").
 */
export function createLargeBytesEncoder(
  desc: DescMessage,
  options: UniversalHandlerOptions["binaryOptions"],
): EncodePieces | undefined {
  const fields = desc.fields.filter(
    ({ fieldKind, scalar, oneof }) => fieldKind === "scalar" && scalar === ScalarType.BYTES && oneof === undefined,
  );
  if (fields.length === 0) return undefined;
  return (message) => {
    for (const { localName, number } of fields) {
      const bytes: unknown = Reflect.get(message, localName);
      if (!(bytes instanceof Uint8Array) || bytes.byteLength < largeBytesMin) continue;
      const others: Message = { ...message, [localName]: nothing };
      const writer = new BinaryWriter().raw(toBinary(desc, others, options));
      return [writer.tag(number, WireType.LengthDelimited).uint32(bytes.byteLength).finish(), bytes];
    }
    return undefined;
  };
}

const nothing = new Uint8Array(0);
