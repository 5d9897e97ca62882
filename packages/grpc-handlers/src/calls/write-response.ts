import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { type Envelope, envelopePrefixBytes, fillEnvelope, toEnvelope } from "@plantstore/protocols";
import type { AnyDefinition } from "./base-call.ts";

/** Writes a message, as the `encode` of a message type from ts-proto. */
// oxlint-disable-next-line typescript/no-explicit-any -- a definition's messages have any type.
export type EncodeMessage = (message: any, writer: BinaryWriter) => BinaryWriter;

/** Maximum bytes of a message after which the writer is kept, because the writer keeps its buffer. */
const keptBytesMax = 64 * 1024;

const noPrefix = new Uint8Array(envelopePrefixBytes);

/**
 * Returns a function that writes a method's responses: with `encode`, or else with the definition's `responseSerialize`.
 *
 * `responseSerialize` of ts-proto starts each message with an empty writer, whose buffer doubles until the message fits,
 * and copies the message. With `encode`, all messages share one writer, and the message is written into its envelope.
 */
export function createResponseWriter(
  { responseSerialize }: AnyDefinition,
  encode: EncodeMessage | undefined,
): (value: unknown) => Envelope {
  return encode === undefined
    ? (value) => toEnvelope(responseSerialize(value))
    : (value) => fillEnvelope(writeMessage(encode, value, noPrefix));
}

/** The writer for the next message. A message that is written inside a getter of another message needs its own. */
let keptWriter: BinaryWriter | undefined;

/** Writes a message after a prefix. After an exception, the writer is not used again, because it is not empty. */
export function writeMessage(encode: EncodeMessage, value: unknown, prefix: Uint8Array): Uint8Array {
  const writer = keptWriter ?? new BinaryWriter();
  keptWriter = undefined;
  const bytes = encode(value, writer.raw(prefix)).finish();
  if (bytes.byteLength <= keptBytesMax) keptWriter = writer;
  return bytes;
}
