import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression, UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { allocateBytes, CollectedBytes } from "../carriers/index.ts";
import type { Codec } from "./codec.ts";
import { messageTooLarge } from "./compression.ts";
import { type MessageSplitter, readMessages } from "./message-splitter.ts";

/**
 * Bytes of the prefix of each message of gRPC, gRPC-Web and Connect streams: flags, and the message's length as an
 * unsigned 32-bit integer in network byte order (gRPC over HTTP/2, "Length-Prefixed-Message").
 */
export const envelopePrefixBytes = 5;

/** Flag: the message is compressed with the encoding of the call. */
const compressedFlag = 0b0000_0001;

/** Flag of gRPC-Web: this is the trailer section, written like an HTTP/1.1 header. */
export const trailerFlag = 0b1000_0000;

/** The content of an envelope: one encoded message. */
export interface Envelope {
  readonly compressed: boolean;
  readonly bytes: Uint8Array;
}

/**
 * Reads the envelope of a unary body.
 *
 * @throws ConnectError `Unimplemented` for no message or more than one (as Connect does), `ResourceExhausted` for a
 * length over the limit, `InvalidArgument` for a body that is cut short or has reserved flags
 */
export function readSingleEnvelope(body: Uint8Array, readMaxBytes: number): Envelope {
  if (body.byteLength === 0) throw new ConnectError("the message is missing", Code.Unimplemented);
  if (body.byteLength < envelopePrefixBytes) throw cutShort();
  const length = readUint32(body, 1);
  if (length > readMaxBytes) throw messageTooLarge(readMaxBytes);
  const end = envelopePrefixBytes + length;
  const envelope = toEnvelope(body, 0, end);
  if (body.byteLength < end) throw cutShort();
  if (body.byteLength > end) throw new ConnectError("a unary call takes one message", Code.Unimplemented);
  return envelope;
}

/** Returns the length in bytes of the envelope that begins with `start`; 0 if its prefix has not arrived. */
export function envelopeBytes(start: Uint8Array): number {
  return start.byteLength < envelopePrefixBytes ? 0 : envelopePrefixBytes + readUint32(start, 1);
}

/** Writes an envelope. */
export function writeEnvelope(flags: number, message: Uint8Array): Uint8Array {
  const envelope = allocateBytes(envelopePrefixBytes + message.byteLength);
  writePrefix(envelope, flags, message.byteLength);
  envelope.set(message, envelopePrefixBytes);
  return envelope;
}

/** Returns the prefix of an uncompressed message of `messageBytes` bytes. */
export function envelopePrefix(messageBytes: number): Uint8Array {
  // Outside node's pool: while it waits to be sent, it would keep 64 KiB of the pool alive.
  return writePrefix(new Uint8Array(envelopePrefixBytes), 0, messageBytes);
}

function writePrefix(into: Uint8Array, flags: number, messageBytes: number): Uint8Array {
  into[0] = flags;
  // The array keeps the lowest eight bits of each.
  into[1] = messageBytes >>> 24;
  into[2] = messageBytes >>> 16;
  into[3] = messageBytes >>> 8;
  into[4] = messageBytes;
  return into;
}

/** Decompresses a message with the encoding of its call. */
export type Decompress = (bytes: Uint8Array) => Promise<Uint8Array>;

/** Reads the only message of a body. */
export function readEnvelopedMessage(
  body: Uint8Array,
  codec: Codec,
  decompress: Decompress | undefined,
  readMaxBytes: number,
): Message | Promise<Message> {
  return decodeEnvelope(readSingleEnvelope(body, readMaxBytes), codec, decompress);
}

/** Reads the messages of a stream. */
export function readEnvelopedMessages(
  pieces: AsyncIterable<Uint8Array>,
  codec: Codec,
  decompress: Decompress | undefined,
  readMaxBytes: number,
): AsyncIterable<Message> {
  const read = (envelope: Envelope): Message | Promise<Message> => decodeEnvelope(envelope, codec, decompress);
  return readMessages(pieces, new EnvelopeReader(readMaxBytes, read));
}

function decodeEnvelope(
  { compressed, bytes }: Envelope,
  codec: Codec,
  decompress: Decompress | undefined,
): Message | Promise<Message> {
  if (!compressed) return codec.decode(bytes);
  // gRPC's compression document requires Internal for a compressed message without an encoding.
  if (decompress === undefined)
    throw new ConnectError("the message is compressed, but no encoding is named", Code.Internal);
  return decompress(bytes).then((plain) => codec.decode(plain));
}

/** Encodes a message and writes it in its envelope, compressed if the client asked for it and it is large enough. */
export function writeEnvelopedMessage(
  message: Message,
  codec: Codec,
  compression: Compression | undefined,
  options: UniversalHandlerOptions,
): Uint8Array | Promise<Uint8Array> {
  return envelop(codec.encode(message), compression, options);
}

/** Writes an encoded message in its envelope, compressed if the client asked for it and it is large enough. */
export function envelop(
  bytes: Uint8Array,
  compression: Compression | undefined,
  { compressMinBytes }: UniversalHandlerOptions,
): Uint8Array | Promise<Uint8Array> {
  if (compression === undefined || bytes.byteLength < compressMinBytes) return writeEnvelope(0, bytes);
  return compression.compress(bytes).then((packed) => writeEnvelope(compressedFlag, packed));
}

/**
 * Reads the envelopes of a stream.
 *
 * Time and memory are in proportion to the bytes that have arrived, in however many pieces, and whatever a prefix
 * announces. Throws a `ConnectError`: `ResourceExhausted` for a length over the limit, `InvalidArgument` for a stream
 * that ends within an envelope or has reserved flags.
 */
export class EnvelopeReader<T> implements MessageSplitter<T> {
  readonly #readMaxBytes: number;
  readonly #read: (envelope: Envelope) => T | Promise<T>;
  #piece: Uint8Array = nothing;
  #at = 0;
  #partial: PartialEnvelope | undefined;

  /** @param read - turns an envelope into a message */
  constructor(readMaxBytes: number, read: (envelope: Envelope) => T | Promise<T>) {
    this.#readMaxBytes = readMaxBytes;
    this.#read = read;
  }

  add(piece: Uint8Array): void {
    this.#piece = piece;
    this.#at = 0;
  }

  take(): T | Promise<T> | undefined {
    if (this.#partial !== undefined) return this.#complete(this.#partial);
    const piece = this.#piece;
    const at = this.#at;
    const end = endOfEnvelope(piece, at, this.#readMaxBytes);
    if (end === at) return this.#keepRest();
    this.#at = end;
    return this.#read(toEnvelope(piece, at, end));
  }

  end(): undefined {
    if (this.#partial !== undefined) throw cutShort();
  }

  #complete(partial: PartialEnvelope): T | Promise<T> | undefined {
    this.#at += partial.take(this.#piece.subarray(this.#at));
    const { whole } = partial;
    if (whole === undefined) return undefined;
    this.#partial = undefined;
    return this.#read(toEnvelope(whole, 0, whole.byteLength));
  }

  #keepRest(): undefined {
    if (this.#at < this.#piece.byteLength) {
      this.#partial = new PartialEnvelope(this.#readMaxBytes);
      this.#partial.take(this.#piece.subarray(this.#at));
    }
    // So that the chunk is not kept while we wait for the client.
    this.add(nothing);
  }
}

const nothing = new Uint8Array(0);

/** @throws ConnectError `InvalidArgument` for reserved flags */
function toEnvelope(bytes: Uint8Array, at: number, end: number): Envelope {
  const flags = bytes[at] as number;
  if ((flags & ~compressedFlag) !== 0) {
    throw new ConnectError(`the message has reserved flags 0b${flags.toString(2)}`, Code.InvalidArgument);
  }
  return { compressed: (flags & compressedFlag) !== 0, bytes: bytes.subarray(at + envelopePrefixBytes, end) };
}

/** An envelope that has arrived in part. */
class PartialEnvelope {
  readonly #readMaxBytes: number;
  /** Its announced length is that of the prefix until the prefix says more. */
  readonly #collected: CollectedBytes;

  constructor(readMaxBytes: number) {
    this.#readMaxBytes = readMaxBytes;
    this.#collected = new CollectedBytes(envelopePrefixBytes, envelopePrefixBytes + readMaxBytes);
  }

  /** The whole envelope, once it has arrived. */
  get whole(): Uint8Array | undefined {
    const { byteLength, announcedBytes } = this.#collected;
    return byteLength === announcedBytes ? this.#collected.bytes : undefined;
  }

  /**
   * Takes its bytes from the start of a piece.
   *
   * @returns how many bytes it took
   * @throws ConnectError
   */
  take(piece: Uint8Array): number {
    const collected = this.#collected;
    const hadPrefix = collected.byteLength >= envelopePrefixBytes;
    const taken = this.#collect(piece);
    if (hadPrefix || collected.byteLength < envelopePrefixBytes) return taken;
    const length = readUint32(collected.bytes, 1);
    if (length > this.#readMaxBytes) throw messageTooLarge(this.#readMaxBytes);
    collected.announcedBytes += length;
    return taken + this.#collect(piece.subarray(taken));
  }

  #collect(piece: Uint8Array): number {
    const { announcedBytes, byteLength } = this.#collected;
    const taken = piece.subarray(0, announcedBytes - byteLength);
    this.#collected.add(taken);
    return taken.byteLength;
  }
}

/** Returns where the envelope at `at` ends; `at` itself if it is incomplete or too large. */
function endOfEnvelope(piece: Uint8Array, at: number, readMaxBytes: number): number {
  if (piece.byteLength - at < envelopePrefixBytes) return at;
  const length = readUint32(piece, at + 1);
  const end = at + envelopePrefixBytes + length;
  return length > readMaxBytes || end > piece.byteLength ? at : end;
}

function readUint32(bytes: Uint8Array, at: number): number {
  // Multiplied, because a shift would be signed.
  return (
    (bytes[at] as number) * 0x100_0000 +
    ((bytes[at + 1] as number) << 16) +
    ((bytes[at + 2] as number) << 8) +
    (bytes[at + 3] as number)
  );
}

function cutShort(): ConnectError {
  return new ConnectError("the message is cut short", Code.InvalidArgument);
}
