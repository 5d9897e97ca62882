import { type DescMethod, isMessage, type Message } from "@bufbuild/protobuf";
import { Code, type ConnectError, type ConnectRouterOptions } from "@connectrpc/connect";
import { createBinaryReader, createBinaryWriter } from "@plantstore/gateway/internal/messages/binary";
import { type BodyMemory, markSingleUse, noBytes } from "@plantstore/gateway/exchange";
import type { ClientCodec } from "../client/index.ts";
import {
  type Codec,
  createMethodCodecs,
  envelopePrefixBytes,
  type MethodCodecs,
  type PartCodec,
} from "@plantstore/gateway/internal/protocols";
import { problem } from "@plantstore/gateway/internal/errors";
import { responseDoesNotMatchDescriptor } from "./upstream-errors.ts";

/**
 * A message that is forwarded as received bytes. Its only member is the name of its type. Interceptors get such
 * messages for calls of binary protocols.
 */
export class OpaqueMessage implements Message {
  readonly $typeName: string;
  readonly bytes: Uint8Array;

  constructor(typeName: string, bytes: Uint8Array) {
    this.$typeName = typeName;
    this.bytes = bytes;
  }
}

/** A message that was received uncompressed, and is forwarded in the same envelope. */
class EnvelopedMessage extends OpaqueMessage {
  readonly #envelope: Uint8Array;
  readonly #received: Uint8Array;

  constructor(typeName: string, envelope: Uint8Array) {
    const bytes = envelope.subarray(envelopePrefixBytes);
    super(typeName, bytes);
    this.#envelope = envelope;
    this.#received = bytes;
  }

  /** The envelope; `undefined` if an interceptor assigned other bytes despite `readonly`. */
  get envelope(): Uint8Array | undefined {
    return this.bytes === this.#received ? this.#envelope : undefined;
  }
}

/**
 * A part of the envelope of a large message, forwarded as it arrives: flow control bounds the memory of a call, not the
 * size of its messages. Interceptors and validation never get one.
 */
export class MessagePart extends OpaqueMessage {
  /** Whether it is the prefix of a message. */
  readonly isFirst: boolean;

  constructor(typeName: string, part: Uint8Array, isFirst: boolean) {
    super(typeName, part);
    this.isFirst = isFirst;
  }
}

/** A large message whose parts are read while it is forwarded. */
export class LargeMessage extends OpaqueMessage {
  readonly parts: AsyncIterable<Message>;

  constructor(typeName: string, parts: AsyncIterable<Message>) {
    super(typeName, noBytes);
    this.parts = parts;
  }
}

/**
 * Yields the only message of a stream, or its parts.
 *
 * @param createError - returns the error to throw if there is no message, or at the start of a second one
 */
export async function* requireSingle(
  messages: AsyncIterable<Message>,
  createError: (count: "none" | "several") => ConnectError,
): AsyncGenerator<Message> {
  let hasMessage = false;
  for await (const message of messages) {
    const isStart = !(message instanceof MessagePart) || message.isFirst;
    if (isStart && hasMessage) throw createError("several");
    hasMessage = true;
    yield message;
  }
  if (!hasMessage) throw createError("none");
}

/** Returns the same error as for messages that are read completely. */
function tooManyRequests(): ConnectError {
  return problem("ERR_PROTOCOL", "a unary call must have exactly one message", { code: Code.Unimplemented });
}

function createPartCodec(typeName: string): PartCodec {
  return {
    open: (part, isFirst) => new MessagePart(typeName, part, isFirst),
    join: (parts) => new LargeMessage(typeName, requireSingle(parts, tooManyRequests)),
    isPart: (message) => message instanceof MessagePart,
  };
}

function envelopeOf(message: unknown): Uint8Array | undefined {
  if (message instanceof EnvelopedMessage) return message.envelope;
  return message instanceof MessagePart ? message.bytes : undefined;
}

/**
 * Creates the codecs for the callers of a proxied RPC: binary messages stay bytes, JSON is converted by descriptors.
 *
 * @param needsMessages - whether requests must be complete, because they are validated
 */
export function createServerCodecs(
  [method, options, jsonRules]: Parameters<typeof createMethodCodecs>,
  needsMessages: boolean,
): MethodCodecs {
  const codecs = createMethodCodecs(method, options, jsonRules);
  const decode = createResponseDecoder(method, options.binaryOptions);
  const { typeName } = method.input;
  const hasInterceptors = options.interceptors.length > 0;
  const toProxied = (name: string, codec: Codec): Codec =>
    name === "proto"
      ? forwardBytes(codec)
      : {
          refusesUnknownFields: codec.refusesUnknownFields,
          decode: codec.decode.bind(codec),
          encode: (message) => codec.encode(decode(message)),
        };
  const forwardBytes = (codec: Codec): Codec => ({
    decode: (bytes) => new OpaqueMessage(typeName, bytes),
    // An interceptor may respond with a message that is not opaque.
    encode: (message) => (message instanceof OpaqueMessage ? message.bytes : codec.encode(message)),
    envelopes: {
      memory: hasInterceptors ? "own" : "shared",
      open: (envelope) => new EnvelopedMessage(typeName, envelope),
      parts: hasInterceptors || needsMessages ? undefined : createPartCodec(typeName),
      // equivalent mutant: without it, the envelope is created again.
      of: (message) => {
        const envelope = envelopeOf(message);
        // Without interceptors, nothing uses a message after it is sent.
        return hasInterceptors || envelope === undefined ? envelope : markSingleUse(envelope);
      },
    },
  });
  return new Map([...codecs].map(([name, codec]) => [name, toProxied(name, codec)]));
}

/**
 * Creates the codec for the upstream of a proxied RPC, which accepts opaque and decoded messages.
 *
 * @param memory - whether messages of responses are copied to separate buffers or to shared blocks
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
      throw new TypeError("the forwarded value is not a message");
    },
    decode: (bytes) => new OpaqueMessage(typeName, bytes),
    // equivalent mutant: without it, the envelope is created again, and small messages take more memory.
    envelopes: {
      memory,
      open: (envelope) => new EnvelopedMessage(typeName, envelope),
      parts: createPartCodec(typeName),
      of: envelopeOf,
    },
  };
}

/**
 * Creates the function that decodes the opaque messages of callers, for validation.
 *
 * The function throws a ConnectError `InvalidArgument` if a message does not match the descriptors.
 */
export function createRequestDecoder(
  { input }: DescMethod,
  options: ConnectRouterOptions["binaryOptions"],
): (message: Message) => Message {
  const read = createBinaryReader(input, options);
  return (message) => {
    if (!(message instanceof OpaqueMessage)) return message;
    try {
      return read(message.bytes);
    } catch (error) {
      throw problem("ERR_MESSAGE_INVALID", `the message is not a valid ${input.typeName}`, { cause: error });
    }
  };
}

/**
 * Creates the function that decodes the opaque messages of an upstream.
 *
 * The function throws a ConnectError `Internal` if a message does not match the descriptors.
 */
export function createResponseDecoder(
  { output }: DescMethod,
  options: ConnectRouterOptions["binaryOptions"],
): (message: Message) => Message {
  const read = createBinaryReader(output, options);
  return (message) => {
    if (!(message instanceof OpaqueMessage)) return message;
    try {
      return read(message.bytes);
    } catch (error) {
      throw responseDoesNotMatchDescriptor(output.typeName, error);
    }
  };
}
