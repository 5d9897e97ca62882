import { type BinaryReadOptions, type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { ByteSource } from "./byte-source.ts";
import { type CodegenOptions, canCompile } from "../codegen/index.ts";
import { type MessageReader, messageReader } from "./message-reader.ts";
import { hasDeclaredWireTypes } from "./wire-types.ts";

/** Maximum message nesting depth, unless the options set a limit. protobuf-es has the same default. */
const depthMax = 100;

/**
 * Creates the function that reads a type's messages as protobuf-es does, with the errors of `fromBinary`. Bytes fields
 * are views of the input. A wire type that the field's declaration does not allow is also an error.
 */
export function createBinaryReader(
  desc: DescMessage,
  options: (Partial<BinaryReadOptions> & CodegenOptions) | undefined,
): (bytes: Uint8Array) => Message {
  const { recursionLimit = depthMax, readUnknownFields = true } = options ?? {};
  let reader: MessageReader | undefined;
  return (bytes) => {
    if (!canCompile(options)) return readWithProtobufEs(desc, bytes, options);
    reader ??= messageReader(desc);
    // equivalent mutant: without the fast reader, reading only takes longer.
    return readFast(reader, bytes, recursionLimit, readUnknownFields) ?? readWithProtobufEs(desc, bytes, options);
  };
}

/** Reads a message, or returns `undefined` if protobuf-es must read it. */
export function readFast(
  reader: MessageReader,
  bytes: Uint8Array,
  depth: number,
  keepsUnknown: boolean,
): Message | undefined {
  try {
    const message = new reader.Message();
    reader.read(new ByteSource(bytes, depth, keepsUnknown), message, bytes.byteLength, -1);
    return message;
  } catch {
    // Every error, such as for a truncated number, is ignored here. protobuf-es then reports the problem.
    return undefined;
  }
}

/** Reads a message with protobuf-es alone. */
function readWithProtobufEs(
  desc: DescMessage,
  bytes: Uint8Array,
  options: Partial<BinaryReadOptions> | undefined,
): Message {
  const message = fromBinary(desc, bytes, options);
  if (hasDeclaredWireTypes(desc, bytes)) return message;
  throw new Error(`a field of ${desc.typeName} has the wrong wire type`);
}
