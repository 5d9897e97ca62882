import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { type Envelope, envelopePrefixBytes, fillEnvelope, toEnvelope } from "@protoport/gateway/forward";
import type { AnyDefinition } from "./base-call.ts";

/** Appends a message to a writer, like `encode` of ts-proto's message types. */
// oxlint-disable-next-line typescript/no-explicit-any -- a definition's messages have any type.
export type EncodeMessage = (message: any, writer: BinaryWriter) => { finish(): Uint8Array };

/** Maximum bytes of an envelope after which the writer is kept, because the writer keeps a buffer of this size. */
const maxKeptBytes = 64 * 1024;

const noPrefix = new Uint8Array(envelopePrefixBytes);

/**
 * Returns a function that writes a method's responses with `encode`, or else with the definition's `responseSerialize`.
 *
 * ts-proto's `responseSerialize` creates a writer for each message. The writer's buffer doubles until the message fits,
 * and the message is copied twice. With `encode`, all messages share one writer, which writes them into their envelope.
 */
export function createResponseWriter(
  { responseSerialize }: AnyDefinition,
  encode: EncodeMessage | undefined,
): (value: unknown) => Envelope {
  return encode === undefined
    ? (value) => toEnvelope(responseSerialize(value))
    : (value) => fillEnvelope(writeMessage(encode, value));
}

/** The writer for the next message. `undefined` while a message is written, whose getters may write other messages. */
let keptWriter: BinaryWriter | undefined;

/** Writes a message after an empty prefix. The writer is not kept if `encode` throws or ignores it, as it is not empty. */
function writeMessage(encode: EncodeMessage, value: unknown): Uint8Array {
  const writer = keptWriter ?? new BinaryWriter();
  keptWriter = undefined;
  const written = encode(value, writer.raw(noPrefix));
  const bytes = written.finish();
  if (written === writer && bytes.byteLength <= maxKeptBytes) keptWriter = writer;
  return bytes;
}
