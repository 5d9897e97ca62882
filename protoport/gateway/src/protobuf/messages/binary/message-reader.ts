import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import {
  ByteSource,
  readBool,
  readInt64,
  readSint64,
  readUint64,
  readUnsigned,
  readVarint32,
  smallIntegers,
} from "./byte-source.ts";
import { compileFunction, type MessageClass, messageClass, memoize, TypeScope, bailOut } from "../codegen/index.ts";
import { generateReader } from "./reader-source.ts";
import { readString } from "./string-reader.ts";
import { hasDeclaredWireTypes } from "./wire-types.ts";

type ReadMessage = (source: ByteSource, message: Message, end: number, endTag: number) => void;

/** A type's fast reader. */
export interface MessageReader {
  readonly Message: MessageClass;
  /** Reads fields into a message, as {@link generateReader} describes. Throws if protobuf-es must read the message. */
  read: ReadMessage;
}

const scope = {
  hasOwn: Object.hasOwn,
  readFieldWithProtobufEs,
  readBool,
  readInt64,
  readSint64,
  readString,
  readUint64,
  readUnknown,
  readUnsigned,
  readVarint32,
  smallIntegers,
  // equivalent mutant: without the name, the thrown ReferenceError has the same effect.
  bailOut,
};

/** Returns a type's fast reader, which is generated when its first message is read. */
export const messageReader: (desc: DescMessage) => MessageReader = memoize((desc) => {
  const reader: MessageReader = {
    Message: messageClass(desc),
    read: (...args) => {
      reader.read = compileReader(desc);
      reader.read(...args);
    },
  };
  return reader;
});

function compileReader(desc: DescMessage): ReadMessage {
  const typeScope = new TypeScope(scope);
  const text = generateReader(desc, {
    name: (value) => typeScope.name(value),
    reader: (child) => typeScope.name(messageReader(child)),
  });
  return compileFunction(text, typeScope.values);
}

/** Reads an unknown field. The bytes after the field's tag are kept, as in protobuf-es. */
function readUnknown(source: ByteSource, message: Message, tag: number): void {
  const { bytes, at: start } = source;
  const wireType: WireType = tag & 7;
  if (tag >>> 3 === 0) throw bailOut;
  skip(source, wireType);
  if (!source.keepsUnknown) return;
  (message.$unknown ??= []).push({ no: tag >>> 3, wireType, data: bytes.subarray(start, source.at) });
}

function skip(source: ByteSource, wireType: WireType): void {
  switch (wireType) {
    case WireType.Varint:
      readInt64(source);
      return;
    case WireType.Bit64:
      source.at += 8;
      return;
    case WireType.Bit32:
      source.at += 4;
      return;
    case WireType.LengthDelimited: {
      const length = readUnsigned(source);
      source.at += length;
      return;
    }
    default:
      // An unknown group may contain other groups, or have no end.
      throw bailOut;
  }
}

/** Uses protobuf-es to read one field, between the offsets `start` and `end`, into a new message. */
function readFieldWithProtobufEs(desc: DescMessage, source: ByteSource, start: number, end: number): Message {
  const bytes = source.bytes.subarray(start, end);
  const options = { recursionLimit: source.depthLeft + 1, readUnknownFields: source.keepsUnknown };
  const message = fromBinary(desc, bytes, options);
  if (!hasDeclaredWireTypes(desc, bytes)) throw bailOut;
  return message;
}
