import { create, type DescMessage, type Message, toBinary, type UnknownField } from "@bufbuild/protobuf";
import {
  type ByteTarget,
  writeBool,
  writeBoolKey,
  writeBytes,
  writeDouble,
  writeFixed32,
  writeFixed64,
  writeFloat,
  writeInt32,
  writeInt64,
  writeLengthBefore,
  writeRaw,
  writeSfixed32,
  writeSfixed64,
  writeSint32,
  writeSint64,
  writeUint32,
  writeUint64,
  writeVarint32,
} from "./byte-target.ts";
import { compileFunction, type MessageClass, messageClass, memoize, TypeScope, bailOut } from "../codegen/index.ts";
import { writeString } from "./string-writer.ts";
import { generateWriter } from "./writer-source.ts";

type WriteMessage = (target: ByteTarget, message: Message) => void;

/** The generated function that writes one message type. */
export interface MessageWriter {
  readonly Message: MessageClass;
  /** Writes a message. Throws {@link bufferTooSmall}, or any other error if protobuf-es must write the message. */
  write: WriteMessage;
  /** The buffer size for a large message, estimated from the last large message. */
  largeBytes: number;
}

const scope = {
  hasOwn: Object.hasOwn,
  bailOut,
  writeFieldWithProtobufEs,
  writeBool,
  writeBoolKey,
  writeBytes,
  writeDouble,
  writeFixed32,
  writeFixed64,
  writeFloat,
  writeInt32,
  writeInt64,
  writeLengthBefore,
  writeSfixed32,
  writeSfixed64,
  writeSint32,
  writeSint64,
  writeString,
  writeUint32,
  writeUint64,
  writeUnknown,
};

/** Returns a type's fast writer, which is generated when its first message is written. */
export const messageWriter: (desc: DescMessage) => MessageWriter = memoize((desc) => {
  const writer: MessageWriter = {
    Message: messageClass(desc),
    largeBytes: 0,
    write: (target, message) => {
      writer.write = compileWriter(desc);
      writer.write(target, message);
    },
  };
  return writer;
});

function compileWriter(desc: DescMessage): WriteMessage {
  const typeScope = new TypeScope(scope);
  const text = generateWriter(desc, {
    name: (value) => typeScope.name(value),
    writer: (child) => typeScope.name(messageWriter(child)),
  });
  return compileFunction(text, typeScope.values);
}

function writeUnknown(target: ByteTarget, fields: readonly UnknownField[]): void {
  for (const { no, wireType, data } of fields) {
    writeVarint32(target, ((no << 3) | wireType) >>> 0);
    writeRaw(target, data);
  }
}

/** Uses protobuf-es to write a message with only one field. */
function writeFieldWithProtobufEs(target: ByteTarget, desc: DescMessage, localName: string, value: unknown): void {
  const message = create(desc);
  Reflect.set(message, localName, value);
  writeRaw(target, toBinary(desc, message));
}
