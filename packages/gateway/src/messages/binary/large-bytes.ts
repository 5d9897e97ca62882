import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { concatBytes, markSingleUse, noBytes } from "../../exchange/index.ts";
import type { CodegenOptions } from "../codegen/index.ts";
import { createMessageWriter } from "./binary-writer.ts";

/** Bytes from which a field is written apart from the other fields. */
// 64 KiB: below, two writers cost as much as the copies that they save.
const largeBytesMin = 64 * 1024;

/**
 * Returns the function that encodes messages of a type. A large field of bytes, such as a part of a file, is copied
 * only once, behind the others: fields may come in any order (protobuf.dev, "Field Order"). The result shares no memory
 * with the message, which a handler may use for its next answer.
 *
 * A writer grows its buffer until everything fits, and returns a copy: megabytes of memory for one of message, and each
 * brings the next garbage collection nearer.
 */
export function createBinaryWriter(
  desc: DescMessage,
  options: (UniversalHandlerOptions["binaryOptions"] & CodegenOptions) | undefined,
): (message: Message) => Uint8Array {
  const fields = desc.fields.filter(mayBeApart);
  const write = createMessageWriter(desc, options);
  return (message) => {
    for (const field of fields) {
      const bytes: unknown = Reflect.get(message, field.localName);
      if (bytes instanceof Uint8Array && bytes.byteLength >= largeBytesMin) {
        const others: Message = { ...message, [field.localName]: unsetValue(field) };
        return markSingleUse(concatBytes([write(others), beginBytes(field, bytes.byteLength), bytes]));
      }
    }
    return write(message);
  };
}

/**
 * Returns whether a field can be written apart: only bytes, and not if they are required, because the others could not
 * be encoded without them. Messages have no member for a field of a oneof.
 */
function mayBeApart({ fieldKind, scalar, presence }: DescField): boolean {
  const isRequired = presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
  return fieldKind === "scalar" && scalar === ScalarType.BYTES && !isRequired;
}

function unsetValue({ presence }: DescField): Uint8Array | undefined {
  return presence === FeatureSet_FieldPresence.IMPLICIT ? noBytes : undefined;
}

function beginBytes({ number }: DescField, length: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(length).finish();
}
