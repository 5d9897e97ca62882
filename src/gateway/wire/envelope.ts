import { Code, ConnectError } from "@connectrpc/connect";
import { messageTooLarge } from "./compression.ts";

// A message on a gRPC, gRPC-Web or Connect stream is preceded by five bytes: flags, and its length
// as an unsigned 32-bit integer in network byte order (gRPC over HTTP/2, "Length-Prefixed-Message").
export const envelopePrefixBytes = 5;

/** Flag: the message is compressed with the encoding of the call. */
export const compressedFlag = 0b0000_0001;

/** Flag of gRPC-Web: what follows is the trailer section, in the form of an HTTP/1.1 header. */
export const trailerFlag = 0b1000_0000;

/** A message with its prefix taken off. */
export interface Envelope {
  readonly compressed: boolean;
  readonly bytes: Uint8Array;
}

/**
 * Takes the one message of a unary call out of its body.
 *
 * @throws ConnectError `Unimplemented` for no message or more than one (as Connect has it),
 * `ResourceExhausted` for a length over the limit, `InvalidArgument` for a body that is cut short or
 * carries reserved flags
 */
export function readSingleEnvelope(body: Uint8Array, readMaxBytes: number): Envelope {
  if (body.byteLength === 0) throw new ConnectError("the message is missing", Code.Unimplemented);
  if (body.byteLength < envelopePrefixBytes) throw cutShort();
  const flags = body[0] as number;
  const length = readUint32(body, 1);
  if (length > readMaxBytes) throw messageTooLarge(readMaxBytes);
  if ((flags & ~compressedFlag) !== 0) {
    throw new ConnectError(`the message has reserved flags 0b${flags.toString(2)}`, Code.InvalidArgument);
  }
  const end = envelopePrefixBytes + length;
  if (body.byteLength < end) throw cutShort();
  if (body.byteLength > end) throw new ConnectError("a unary call takes one message", Code.Unimplemented);
  return { compressed: (flags & compressedFlag) !== 0, bytes: body.subarray(envelopePrefixBytes, end) };
}

/** Puts the prefix before a message, and room for `spareBytes` after it. */
export function writeEnvelope(flags: number, message: Uint8Array, spareBytes = 0): Buffer {
  const envelope = Buffer.allocUnsafe(envelopePrefixBytes + message.byteLength + spareBytes);
  envelope[0] = flags;
  envelope.writeUInt32BE(message.byteLength, 1);
  envelope.set(message, envelopePrefixBytes);
  return envelope;
}

function readUint32(bytes: Uint8Array, at: number): number {
  // Multiplied, not shifted: the shift is signed.
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
