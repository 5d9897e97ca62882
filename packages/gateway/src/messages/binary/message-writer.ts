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
import { makeFunction, type MessageClass, messageClass, oncePer, TypeScope, unsure } from "../codegen/index.ts";
import { writeText } from "./text-writer.ts";
import { writerText } from "./writer-text.ts";

type WriteMessage = (target: ByteTarget, message: Message) => void;

/** The quick writer of a type. */
export interface MessageWriter {
  readonly Message: MessageClass;
  /** Writes a message. Throws {@link tooSmall}, or anything else when it leaves the message to protobuf-es. */
  write: WriteMessage;
  /** The bytes to set aside for a large message, by the last one. */
  largeBytes: number;
}

const scope = {
  hasOwn: Object.hasOwn,
  unsure,
  writeAlone,
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
  writeText,
  writeUint32,
  writeUint64,
  writeUnknown,
};

/** Returns the quick writer of a type, whose code is made when the first message of the type is written. */
export const messageWriter: (desc: DescMessage) => MessageWriter = oncePer((desc) => {
  const writer: MessageWriter = {
    Message: messageClass(desc),
    largeBytes: 0,
    write: (target, message) => {
      writer.write = makeWriter(desc);
      writer.write(target, message);
    },
  };
  return writer;
});

function makeWriter(desc: DescMessage): WriteMessage {
  const own = new TypeScope(scope);
  const text = writerText(desc, {
    name: (value) => own.name(value),
    writer: (child) => own.name(messageWriter(child)),
  });
  return makeFunction(text, own.values);
}

function writeUnknown(target: ByteTarget, fields: readonly UnknownField[]): void {
  for (const { no, wireType, data } of fields) {
    writeVarint32(target, ((no << 3) | wireType) >>> 0);
    writeRaw(target, data);
  }
}

/** Has protobuf-es write one field, as the only one of a message. */
function writeAlone(target: ByteTarget, desc: DescMessage, localName: string, value: unknown): void {
  const message = create(desc);
  Reflect.set(message, localName, value);
  writeRaw(target, toBinary(desc, message));
}
