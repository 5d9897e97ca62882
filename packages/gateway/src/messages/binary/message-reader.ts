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
import { makeFunction, type MessageClass, messageClass, oncePer, TypeScope, unsure } from "../codegen/index.ts";
import { readerText } from "./reader-text.ts";
import { readText } from "./text-reader.ts";
import { hasDeclaredWireTypes } from "./wire-types.ts";

type ReadMessage = (source: ByteSource, message: Message, end: number, endTag: number) => void;

/** The quick reader of a type. */
export interface MessageReader {
  readonly Message: MessageClass;
  /** Reads into a message, as {@link readerText} says. Throws when it leaves the message to protobuf-es. */
  read: ReadMessage;
}

const scope = {
  hasOwn: Object.hasOwn,
  readAlone,
  readBool,
  readInt64,
  readSint64,
  readText,
  readUint64,
  readUnknown,
  readUnsigned,
  readVarint32,
  smallIntegers,
  unsure,
};

/** Returns the quick reader of a type, whose code is made when the first message of the type is read. */
export const messageReader: (desc: DescMessage) => MessageReader = oncePer((desc) => {
  const reader: MessageReader = {
    Message: messageClass(desc),
    read: (...args) => {
      reader.read = makeReader(desc);
      reader.read(...args);
    },
  };
  return reader;
});

function makeReader(desc: DescMessage): ReadMessage {
  const own = new TypeScope(scope);
  const text = readerText(desc, {
    name: (value) => own.name(value),
    reader: (child) => own.name(messageReader(child)),
  });
  return makeFunction(text, own.values);
}

/** Reads a field that the type does not have. If it is kept, then as by protobuf-es: the bytes behind its tag. */
function readUnknown(source: ByteSource, message: Message, tag: number): void {
  const { bytes, at: start } = source;
  const wireType: WireType = tag & 7;
  if (tag >>> 3 === 0) throw unsure;
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
      // An unknown group can contain others, or have no end.
      throw unsure;
  }
}

/** Has protobuf-es read one field, between two places, into a message of its own. */
function readAlone(desc: DescMessage, source: ByteSource, start: number, end: number): Message {
  const bytes = source.bytes.subarray(start, end);
  const options = { recursionLimit: source.depthLeft + 1, readUnknownFields: source.keepsUnknown };
  const message = fromBinary(desc, bytes, options);
  if (!hasDeclaredWireTypes(desc, bytes)) throw unsure;
  return message;
}
