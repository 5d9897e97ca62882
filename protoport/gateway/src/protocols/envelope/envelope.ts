import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../../protobuf/index.ts";
import { allocateBytes, CollectedBytes, HttpProblem, noBytes } from "../../http/index.ts";
import { messageTooLargeError } from "./compression.ts";
import { httpError } from "../http-error.ts";
import type { MessageSplitter } from "./message-splitter.ts";

/**
 * Bytes in the prefix of each message in gRPC, gRPC-Web and Connect streams. The prefix has one byte of flags, and the
 * message's length as an unsigned 32-bit integer in network byte order (gRPC over HTTP/2, "Length-Prefixed-Message").
 */
export const envelopePrefixBytes = 5;

/** Maximum message bytes in an envelope, which is the largest length in 32 bits. */
export const maxMessageBytes: number = 2 ** 32 - 1;

/** Maximum bytes in a message that is never forwarded in parts. A message up to this size arrives in one read. */
const maxWholeMessageBytes: number = 64 * 1024;

/** The flag for a message that is compressed with the call's encoding. */
export const compressedFlag = 0b0000_0001;

/** The gRPC-Web flag for an envelope with the trailer section, in the format of an HTTP/1.1 header. */
export const trailerFlag = 0b1000_0000;

/** The start of an envelope whose prefix was not received, so that its message starts at 0. */
const withoutPrefix = -envelopePrefixBytes;

/** An envelope with one encoded message. */
export class Envelope {
  readonly compressed: boolean;
  readonly #piece: Uint8Array;
  readonly #at: number;
  readonly #end: number;

  /** @param piece - bytes that contain the envelope from `at` to `end`, or without `at` only the message */
  constructor(compressed: boolean, piece: Uint8Array, at: number = withoutPrefix, end: number = piece.byteLength) {
    this.compressed = compressed;
    this.#piece = piece;
    this.#at = at;
    this.#end = end;
  }

  get bytes(): Uint8Array {
    if (this.#at === withoutPrefix) return this.#piece;
    return this.#piece.subarray(this.#at + envelopePrefixBytes, this.#end);
  }

  /** The message with its prefix. A message that was received without a prefix is copied. */
  get withPrefix(): Uint8Array {
    if (this.#at === withoutPrefix) return writeEnvelope(0, this.#piece);
    const { byteLength } = this.#piece;
    return this.#end - this.#at === byteLength ? this.#piece : this.#piece.subarray(this.#at, this.#end);
  }
}

/** A message that a wire and a callee pass to each other: decoded, or encoded in the binary format. */
export type Content = Message | Envelope;

/** Converts a received envelope to what the callee wants: a message for a handler, or the envelope for an upstream. */
export type Take<T> = (envelope: Envelope) => T;

/**
 * Returns the envelope of an encoded message that starts after {@link envelopePrefixBytes} unused bytes. The prefix is
 * written into these bytes, so that the message is not copied into an envelope.
 */
export function fillEnvelope(bytes: Uint8Array): Envelope {
  return new Envelope(false, writePrefix(bytes, 0, bytes.byteLength - envelopePrefixBytes), 0);
}

/**
 * Reads a unary body's envelope.
 *
 * @throws ConnectError `Unimplemented` for no message or several messages (as in Connect), `ResourceExhausted` for a
 * length over the limit, `InvalidArgument` for a truncated body or reserved flags
 */
export function readSingleEnvelope(body: Uint8Array, readMaxBytes: number): Envelope {
  // In gRPC, a call with too few or too many messages has the code Unimplemented ("Status codes").
  if (body.byteLength === 0) throw problem("ERR_PROTOCOL", "the message is missing", { code: Code.Unimplemented });
  const end = envelopeBytes(body);
  if (end === 0) throw truncatedError();
  const envelope = envelopeAt(body, 0, end, readMaxBytes);
  if (body.byteLength < end) throw truncatedError();
  if (body.byteLength > end) throw severalMessagesError();
  return envelope;
}

/** A forwarded call's uncompressed message in binary format. A large message may be several pieces of an envelope. */
export type ForwardedMessage = Envelope | Uint8Array;

/** Returns the envelope of an encoded message, which is copied only if a wire sends the message in an envelope. */
export function toEnvelope(message: Uint8Array): Envelope {
  return new Envelope(false, message);
}

/**
 * Yields the pieces of a body with one large envelope.
 *
 * @throws ConnectError `ResourceExhausted` for a length over the limit; the iterator throws the {@link
 * readSingleEnvelope} errors, or the reason why the body was aborted
 */
export function readLargeEnvelope(
  start: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
  readMaxBytes: number,
): AsyncIterable<Uint8Array> {
  const bytes = envelopeBytes(start);
  if (bytes > envelopePrefixBytes + readMaxBytes) throw messageTooLargeError(readMaxBytes);
  return envelopePiecesOf(start, rest, bytes);
}

async function* envelopePiecesOf(
  start: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
  bytes: number,
): AsyncGenerator<Uint8Array> {
  let missingBytes = bytes - start.byteLength;
  if (missingBytes < 0) throw severalMessagesError();
  yield start;
  try {
    for await (const piece of rest) {
      missingBytes -= piece.byteLength;
      if (missingBytes < 0) throw severalMessagesError();
      yield piece;
    }
  } catch (error) {
    throw error instanceof HttpProblem ? httpError(error) : error;
  }
  if (missingBytes > 0) throw truncatedError();
}

/** Returns the bytes in the envelope that starts at `at`, or 0 if the prefix is incomplete. */
export function envelopeBytes(bytes: Uint8Array, at = 0): number {
  if (bytes.byteLength - at < envelopePrefixBytes) return 0;
  const low = ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 8) | (bytes[at + 4] ?? 0);
  // Multiplies the highest byte, because the result of a shift would be signed.
  return envelopePrefixBytes + (bytes[at + 1] ?? 0) * 0x100_0000 + low;
}

/** Returns whether an envelope's bytes start with the prefix of a message that may be forwarded in parts. */
export function isLargeEnvelope(bytes: Uint8Array): boolean {
  return bytes[0] === 0 && envelopeBytes(bytes) > envelopePrefixBytes + maxWholeMessageBytes;
}

/** Writes an envelope. */
export function writeEnvelope(flags: number, message: Uint8Array): Uint8Array {
  const envelope = allocateBytes(envelopePrefixBytes + message.byteLength);
  writePrefix(envelope, flags, message.byteLength);
  envelope.set(message, envelopePrefixBytes);
  return envelope;
}

/** Returns the prefix for an uncompressed message with `messageBytes` bytes. */
export function envelopePrefix(messageBytes: number): Uint8Array {
  // Allocates a separate buffer. A slice from Node's buffer pool would keep 64 KiB alive until the slice is sent.
  return writePrefix(new Uint8Array(envelopePrefixBytes), 0, messageBytes);
}

function writePrefix(into: Uint8Array, flags: number, messageBytes: number): Uint8Array {
  into[0] = flags;
  into[1] = messageBytes >>> 24;
  into[2] = messageBytes >>> 16;
  into[3] = messageBytes >>> 8;
  into[4] = messageBytes;
  return into;
}

/**
 * Reads a stream's envelopes.
 *
 * Time and memory are proportional to the received bytes, not to the number of pieces or the announced length. Throws a
 * `ConnectError` `ResourceExhausted` for a length over the limit, or `InvalidArgument` for a stream that ends within an
 * envelope or has reserved flags.
 */
export class EnvelopeReader<T> implements MessageSplitter<T> {
  readonly #readMaxBytes: number;
  readonly #read: (envelope: Envelope) => T | Promise<T>;
  #piece: Uint8Array = noBytes;
  #at = 0;
  /** The incomplete envelope. Until the prefix has arrived, `announcedBytes` is the prefix's length. */
  #partial: CollectedBytes | undefined;
  readonly #readPart: ((part: Uint8Array) => T) | undefined;
  /** Remaining bytes of the message that is being read in parts. */
  #missingBytes = 0;

  /**
   * @param read - converts an envelope to a message
   * @param readPart - converts a part of a large uncompressed message, or `undefined` to read only complete messages
   */
  constructor(readMaxBytes: number, read: (envelope: Envelope) => T | Promise<T>, readPart?: (part: Uint8Array) => T) {
    this.#readMaxBytes = readMaxBytes;
    this.#read = read;
    this.#readPart = readPart;
  }

  add(piece: Uint8Array): void {
    this.#piece = piece;
    this.#at = 0;
  }

  take(): T | Promise<T> | undefined {
    const at = this.#at;
    const piece = this.#piece;
    if (this.#missingBytes > 0) return this.#readNextPart();
    if (this.#partial === undefined) {
      const end = at + envelopeBytes(piece, at);
      if (end > at && end <= piece.byteLength) {
        this.#advance(end);
        return this.#read(envelopeAt(piece, at, end, this.#readMaxBytes));
      }
      if (at === piece.byteLength) return undefined;
    }
    const collected = this.#collect();
    if (collected === undefined) return undefined;
    if (this.#missingBytes > 0) return this.#readPart?.(collected);
    return this.#read(envelopeAt(collected, 0, collected.byteLength, this.#readMaxBytes));
  }

  end(): undefined {
    if (this.#partial !== undefined || this.#missingBytes > 0) throw truncatedError();
  }

  #readNextPart(): T | undefined {
    const part = this.#piece.subarray(this.#at, this.#at + this.#missingBytes);
    if (part.byteLength === 0) return undefined;
    this.#missingBytes -= part.byteLength;
    this.#advance(this.#at + part.byteLength);
    return this.#readPart?.(part);
  }

  /** Returns the complete envelope, the prefix if the message is read in parts, or `undefined` if bytes are missing. */
  #collect(): Uint8Array | undefined {
    const limitBytes = envelopePrefixBytes + this.#readMaxBytes;
    const partial = (this.#partial ??= new CollectedBytes(envelopePrefixBytes, limitBytes));
    if (partial.byteLength < envelopePrefixBytes) {
      this.#collectAnnounced(partial);
      if (partial.byteLength < envelopePrefixBytes) return undefined;
      partial.announcedBytes = envelopeBytes(partial.bytes);
      if (partial.announcedBytes > limitBytes) throw messageTooLargeError(this.#readMaxBytes);
      if (this.#readPart !== undefined && isLargeEnvelope(partial.bytes)) {
        this.#missingBytes = partial.announcedBytes - envelopePrefixBytes;
        this.#partial = undefined;
        return partial.bytes;
      }
    }
    this.#collectAnnounced(partial);
    if (partial.byteLength < partial.announcedBytes) return undefined;
    this.#partial = undefined;
    return partial.bytes;
  }

  #collectAnnounced(partial: CollectedBytes): void {
    const part = this.#piece.subarray(this.#at, this.#at + partial.announcedBytes - partial.byteLength);
    partial.add(part);
    this.#advance(this.#at + part.byteLength);
  }

  #advance(at: number): void {
    this.#at = at;
    // Releases the chunk while waiting for the client.
    if (at === this.#piece.byteLength) this.add(noBytes);
  }
}

/** @throws ConnectError `ResourceExhausted` for a length over the limit, `InvalidArgument` for reserved flags */
function envelopeAt(bytes: Uint8Array, at: number, end: number, readMaxBytes: number): Envelope {
  if (end - at > envelopePrefixBytes + readMaxBytes) throw messageTooLargeError(readMaxBytes);
  const flags = bytes[at] ?? 0;
  if ((flags & ~compressedFlag) !== 0) {
    throw problem("ERR_PROTOCOL", `the message has reserved flags 0b${flags.toString(2)}`);
  }
  return new Envelope(flags === compressedFlag, bytes, at, end);
}

function severalMessagesError(): ConnectError {
  // In gRPC, too few or too many messages have the code Unimplemented ("Status codes").
  return problem("ERR_PROTOCOL", "a unary call must have exactly one message", { code: Code.Unimplemented });
}

function truncatedError(): ConnectError {
  return problem("ERR_PROTOCOL", "the message is truncated");
}
