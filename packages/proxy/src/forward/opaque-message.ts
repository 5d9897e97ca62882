import { type DescMethod, isMessage, type Message } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import { createBinaryReader, createBinaryWriter } from "@plantstore/gateway/internal/messages/binary";
import { type BodyMemory, markSingleUse } from "@plantstore/gateway/exchange";
import type { ClientCodec } from "../client/index.ts";
import {
  type Codec,
  createMethodCodecs,
  envelopePrefixBytes,
  type MethodCodecs,
} from "@plantstore/gateway/internal/protocols";
import { unfitAnswer } from "./upstream-errors.ts";

/**
 * A message that is passed on as the bytes that it came in, with the name of its type and no other member. It is what
 * interceptors see of the calls of binary protocols.
 */
export class OpaqueMessage implements Message {
  readonly $typeName: string;
  readonly bytes: Uint8Array;

  constructor(typeName: string, bytes: Uint8Array) {
    this.$typeName = typeName;
    this.bytes = bytes;
  }
}

/** A message that came in an envelope, uncompressed, and is forwarded in it. */
class EnvelopedMessage extends OpaqueMessage {
  readonly #envelope: Uint8Array;
  readonly #received: Uint8Array;

  constructor(typeName: string, envelope: Uint8Array) {
    const bytes = envelope.subarray(envelopePrefixBytes);
    super(typeName, bytes);
    this.#envelope = envelope;
    this.#received = bytes;
  }

  /** The envelope; `undefined` if an interceptor, which types do not always stop, has set other bytes. */
  get envelope(): Uint8Array | undefined {
    return this.bytes === this.#received ? this.#envelope : undefined;
  }
}

function envelopeOf(message: unknown): Uint8Array | undefined {
  return message instanceof EnvelopedMessage ? message.envelope : undefined;
}

/** Creates the codecs for the callers of a proxied RPC: bytes stay bytes, and JSON is read and written by descriptors. */
export function createServerCodecs(
  ...[method, options, jsonRules]: Parameters<typeof createMethodCodecs>
): MethodCodecs {
  const codecs = createMethodCodecs(method, options, jsonRules);
  const decode = createAnswerDecoder(method, options.binaryOptions);
  const { typeName } = method.input;
  const isSeen = options.interceptors.length > 0;
  const toProxied = (name: string, codec: Codec): Codec =>
    name === "proto"
      ? passOn(codec)
      : { decode: codec.decode.bind(codec), encode: (message) => codec.encode(decode(message)) };
  const passOn = (codec: Codec): Codec => ({
    decode: (bytes) => new OpaqueMessage(typeName, bytes),
    // An interceptor may respond with a message of its own.
    encode: (message) => (message instanceof OpaqueMessage ? message.bytes : codec.encode(message)),
    envelopes: {
      memory: isSeen ? "own" : "shared",
      open: (envelope) => new EnvelopedMessage(typeName, envelope),
      // No test can tell: without it, an envelope is made anew.
      of: (message) => {
        const envelope = envelopeOf(message);
        // Interceptors may keep a message; nobody else sees it once it is sent.
        return isSeen || envelope === undefined ? envelope : markSingleUse(envelope);
      },
    },
  });
  return new Map([...codecs].map(([name, codec]) => [name, toProxied(name, codec)]));
}

/**
 * Creates the codec for the upstream of a proxied RPC, which takes what came as bytes, and messages that were decoded.
 *
 * @param memory - where the bytes of responses may be
 */
export function createUpstreamCodec(
  { input, output }: DescMethod,
  options: ConnectRouterOptions["binaryOptions"],
  memory: BodyMemory,
): ClientCodec {
  const { typeName } = output;
  const write = createBinaryWriter(input, options);
  return {
    encode: (message) => {
      if (message instanceof OpaqueMessage) return message.bytes;
      if (isMessage(message)) return write(message);
      throw new TypeError("what is passed on is no message");
    },
    decode: (bytes) => new OpaqueMessage(typeName, bytes),
    // No test can tell: without it, an envelope is made anew, and small messages take more memory.
    envelopes: { memory, open: (envelope) => new EnvelopedMessage(typeName, envelope), of: envelopeOf },
  };
}

/**
 * Creates the function that decodes the messages of an upstream, unless they are decoded.
 *
 * It throws a ConnectError, `Internal`, for one that the descriptors do not fit.
 */
export function createAnswerDecoder(
  { output }: DescMethod,
  options: ConnectRouterOptions["binaryOptions"],
): (message: Message) => Message {
  const read = createBinaryReader(output, options);
  return (message) => {
    if (!(message instanceof OpaqueMessage)) return message;
    try {
      return read(message.bytes);
    } catch (error) {
      throw unfitAnswer(output.typeName, error);
    }
  };
}
