import { type DescField, type DescMessage, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { concatBytes, markSingleUse } from "../carriers/index.ts";

/** Bytes of a field from which on it is written apart from the other fields. */
// 64 KiB: below, two writers cost as much as the copies that they save.
const largeBytesMin = 64 * 1024;

/**
 * Returns the function that encodes messages of a type. A large field of bytes, such as a part of a file, is copied
 * once, behind everything else: the order of fields is free (protobuf.dev, "Field Order"). What is returned has nothing
 * of the message's own memory, which a handler may use for its next answer.
 *
 * The writer of protobuf-es doubles its buffer, zeroed, until all fits, and returns a copy of what it wrote: three
 * megabytes of memory for one of message, and each brings the next garbage collection nearer.
 */
export function createBinaryEncoder(
  desc: DescMessage,
  options: UniversalHandlerOptions["binaryOptions"],
): (message: Message) => Uint8Array {
  const fields = desc.fields.filter(mayBeApart);
  return (message) => {
    for (const field of fields) {
      const bytes: unknown = Reflect.get(message, field.localName);
      if (bytes instanceof Uint8Array && bytes.byteLength >= largeBytesMin) {
        const others: Message = { ...message, [field.localName]: unsetValue(field) };
        return markSingleUse(
          concatBytes([toBinary(desc, others, options), beginBytes(field, bytes.byteLength), bytes]),
        );
      }
    }
    return toBinary(desc, message, options);
  };
}

/** Whether a message without the field can be encoded: one that is required, or of a oneof, stays with the others. */
function mayBeApart({ fieldKind, scalar, oneof, presence }: DescField): boolean {
  const isRequired = presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
  return fieldKind === "scalar" && scalar === ScalarType.BYTES && oneof === undefined && !isRequired;
}

function unsetValue({ presence }: DescField): Uint8Array | undefined {
  return presence === FeatureSet_FieldPresence.IMPLICIT ? nothing : undefined;
}

function beginBytes({ number }: DescField, length: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(length).finish();
}

const nothing = new Uint8Array(0);
