import {
  type BinaryWriteOptions,
  create,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  toBinary,
  type UnknownField,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { allocateBytes, concatBytes, markSingleUse, noBytes } from "../../../http/index.ts";
import {
  bailOut,
  canCompile,
  type CodegenOptions,
  compileFunction,
  memoize,
  type MessageClass,
  messageClass,
  TypeScope,
} from "../codegen.ts";
import {
  bufferTooSmall,
  ByteTarget,
  lengthBytes,
  requireCapacity,
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
import { generateWriter } from "./writer-source.ts";

/** Minimum bytes in a field that is written separately. Below 64 KiB, a second writer costs as much as the copy. */
const minSeparateFieldBytes = 64 * 1024;

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
      if (bytes instanceof Uint8Array && bytes.byteLength >= minSeparateFieldBytes) {
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

/** Size in bytes of the buffer that is kept for the next message. Most messages fit into this buffer. */
// equivalent mutant: with another buffer size, writing only takes longer.
const keptBytes = 64 * 1024;

/** Buffer size in bytes after which the fast writer gives up and protobuf-es writes the message. */
const maxFastBytes = 64 * 1024 * 1024;

/** Keeps one buffer for the next message. */
class ReusableTarget {
  #keptTarget: ByteTarget | undefined;

  /** Returns the kept buffer, or a new buffer if a message is written inside a getter of another message. */
  take(): ByteTarget {
    const target = this.#keptTarget ?? new ByteTarget(keptBytes);
    this.#keptTarget = undefined;
    return target;
  }

  /** Keeps a buffer with the usual size for the next message. */
  keep(target: ByteTarget): void {
    if (target.bytes.byteLength === keptBytes) this.#keptTarget = target;
  }
}

const reusable = new ReusableTarget();

/**
 * Creates the function that writes a type's messages with the same bytes and errors as `toBinary`. The function's
 * result shares no memory with the message.
 */
function createMessageWriter(
  desc: DescMessage,
  options: (Partial<BinaryWriteOptions> & CodegenOptions) | undefined,
): (message: Message) => Uint8Array {
  // The fast writer always writes unknown fields.
  if (options?.writeUnknownFields === false) return (message) => toBinary(desc, message, options);
  let writer: MessageWriter | undefined;
  return (message) => {
    if (!canCompile(options)) return toBinary(desc, message, options);
    writer ??= messageWriter(desc);
    // equivalent mutant: without the fast writer, writing only takes longer.
    return writeFast(writer, message) ?? toBinary(desc, message, options);
  };
}

/** Writes a message, or returns `undefined` if protobuf-es must write it. */
export function writeFast(writer: MessageWriter, message: Message): Uint8Array | undefined {
  let target = reusable.take();
  try {
    for (;;) {
      if (tryWrite(writer, message, target)) return takeBytes(writer, target);
      // equivalent mutant: with another limit, writing only takes longer.
      if (target.bytes.byteLength >= maxFastBytes) return undefined;
      target = new ByteTarget(Math.max(4 * target.bytes.byteLength, target.requiredBytes, writer.largeBytes));
    }
  } catch {
    // A property has a wrong type, or a getter has thrown an error. protobuf-es then reports the problem.
    return undefined;
  } finally {
    reusable.keep(target);
  }
}

function takeBytes(writer: MessageWriter, { bytes, at }: ByteTarget): Uint8Array {
  if (bytes.byteLength !== keptBytes) {
    // Adds an eighth to the size, so that the type's next large message probably fits.
    writer.largeBytes = Math.ceil(at * 1.125);
    if (at > 0.75 * bytes.byteLength) return bytes.subarray(0, at);
  }
  const copy = allocateBytes(at);
  copy.set(bytes.subarray(0, at));
  return copy;
}

/** Writes a message, and returns whether the message fits into the buffer. */
function tryWrite(writer: MessageWriter, message: Message, target: ByteTarget): boolean {
  target.at = 0;
  // equivalent mutant: without the reset, the next buffer is only larger than necessary.
  target.requiredBytes = 0;
  try {
    writer.write(target, message);
    return target.fits;
  } catch (error) {
    if (error === bufferTooSmall) return false;
    throw error;
  }
}

type WriteMessage = (target: ByteTarget, message: Message) => void;

/** The generated function that writes one message type. */
interface MessageWriter {
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

/** Length in characters below which JavaScript code writes a string faster than the runtime's encoder. */
const shortTextLength = 40;

/** node's Buffer, if it exists. Buffer writes at an offset directly, but a TextEncoder needs a subarray. */
const NodeBuffer: typeof Buffer | undefined = globalThis.Buffer;

const textEncoder = new TextEncoder();

function writeLongText(text: string, bytes: Uint8Array, at: number): number {
  const isBuffer = NodeBuffer !== undefined && bytes instanceof NodeBuffer;
  return isBuffer ? bytes.write(text, at) : textEncoder.encodeInto(text, bytes.subarray(at)).written;
}

/** Writes a string with its length before it. A lone surrogate becomes U+FFFD, as in protobuf-es. */
export function writeString(target: ByteTarget, text: unknown): void {
  if (typeof text !== "string") throw bailOut;
  // equivalent mutant: the result is the same if the buffer is enlarged first.
  if (text.length < shortTextLength && writeAscii(target, text)) return;
  // A UTF-16 unit takes at most three bytes, and the length takes at most five bytes.
  requireCapacity(target, 5 + 3 * text.length);
  const { bytes, at: start } = target;
  const reserved = lengthBytes(text.length);
  target.at = start + reserved + writeLongText(text, bytes, start + reserved);
  writeLengthBefore(target, start, reserved);
}

/** Writes a short string if the string is ASCII. Returns whether the string was written. */
function writeAscii(target: ByteTarget, text: string): boolean {
  const { bytes } = target;
  const { length } = text;
  const start = target.at + 1;
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index);
    // equivalent mutant: the bytes written so far are overwritten.
    if (code > 0x7f) return false;
    bytes[start + index] = code;
  }
  bytes[start - 1] = length;
  target.at = start + length;
  return true;
}
