import { type BinaryReadOptions, type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { ByteSource } from "./byte-source.ts";
import { type CodegenOptions, mayMakeCode } from "../codegen/index.ts";
import { type MessageReader, messageReader } from "./message-reader.ts";
import { hasDeclaredWireTypes } from "./wire-types.ts";

/** Messages inside each other at most, unless the options say otherwise: as many as protobuf-es reads. */
const depthMax = 100;

/**
 * Returns the function that reads messages of a type. Their bytes and texts are as protobuf-es reads them: bytes are
 * views of what was read.
 *
 * It throws what `fromBinary` throws, and an error where a field is written in another way than it is declared.
 */
export function createBinaryReader(
  desc: DescMessage,
  options: (Partial<BinaryReadOptions> & CodegenOptions) | undefined,
): (bytes: Uint8Array) => Message {
  const { recursionLimit = depthMax, readUnknownFields = true } = options ?? {};
  let reader: MessageReader | undefined;
  return (bytes) => {
    if (!mayMakeCode(options)) return readPlainly(desc, bytes, options);
    reader ??= messageReader(desc);
    // No test can tell: protobuf-es alone takes longer.
    return readQuickly(reader, bytes, recursionLimit, readUnknownFields) ?? readPlainly(desc, bytes, options);
  };
}

/** Reads a message, or returns `undefined` if that is left to protobuf-es. */
export function readQuickly(
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
    // Also for a text that is too long for the engine, or a number that is cut off: protobuf-es says what is wrong.
    return undefined;
  }
}

/** Reads a message by protobuf-es alone. */
function readPlainly(desc: DescMessage, bytes: Uint8Array, options: Partial<BinaryReadOptions> | undefined): Message {
  const message = fromBinary(desc, bytes, options);
  if (hasDeclaredWireTypes(desc, bytes)) return message;
  throw new Error(`a field of ${desc.typeName} has another wire type than it is declared with`);
}
