import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { concatBytes, markSingleUse, noBytes } from "../../../http/index.ts";
import type { CodegenOptions } from "../codegen/index.ts";
import { createMessageWriter } from "./binary-writer.ts";

/** Minimum bytes in a field that is written separately. Below 64 KiB, a second writer costs as much as the copy. */
const separateFieldBytesMin = 64 * 1024;

/**
 * Returns the function that encodes a type's messages. A large bytes field, such as a file chunk, is copied only once.
 * The large field is written after the other fields, because fields may come in any order (protobuf.dev, "Field
 * Order"). The encoded bytes share no memory with the message, because a handler may reuse the message for its next
 * response.
 *
 * A single writer for all fields would grow its buffer until everything fits, and return a copy. For a field with one
 * megabyte, a single writer would allocate several megabytes and cause garbage collections.
 */
export function createBinaryWriter(
  desc: DescMessage,
  options: (UniversalHandlerOptions["binaryOptions"] & CodegenOptions) | undefined,
): (message: Message) => Uint8Array {
  const fields = desc.fields.filter(canBeSeparate);
  const write = createMessageWriter(desc, options);
  return (message) => {
    for (const field of fields) {
      const bytes: unknown = Reflect.get(message, field.localName);
      if (bytes instanceof Uint8Array && bytes.byteLength >= separateFieldBytesMin) {
        const withoutField: Message = { ...message, [field.localName]: unsetValue(field) };
        return markSingleUse(concatBytes([write(withoutField), beginBytes(field, bytes.byteLength), bytes]));
      }
    }
    return write(message);
  };
}

/**
 * Returns whether a bytes field can be written separately. Required fields cannot, because the other fields could not
 * be encoded. Members of oneofs cannot, because they are not properties of the message.
 */
function canBeSeparate({ fieldKind, scalar, presence }: DescField): boolean {
  const isRequired = presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
  return fieldKind === "scalar" && scalar === ScalarType.BYTES && !isRequired;
}

function unsetValue({ presence }: DescField): Uint8Array | undefined {
  return presence === FeatureSet_FieldPresence.IMPLICIT ? noBytes : undefined;
}

function beginBytes({ number }: DescField, length: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(length).finish();
}
