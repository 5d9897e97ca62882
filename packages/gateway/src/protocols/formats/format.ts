import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { BodyMemory } from "../../exchange/index.ts";
import type { ReadJsonOptions } from "../../messages/json/index.ts";

/**
 * An encoding of messages in RPC protocols. To add one, add a file to this folder and an item to the list in
 * `formats.ts`.
 */
export interface Format {
  /** The name in content types (`application/grpc+proto`) and in the query of Connect (`encoding=proto`). */
  readonly name: string;
  /** Whether the format is text. Only content types of text formats may have a charset. */
  readonly isText: boolean;
  createCodec(method: DescMethod, options: UniversalHandlerOptions, jsonRules: ReadJsonOptions): Codec;
}

/** Converts the messages of one RPC to and from bytes, in one format. */
export interface Codec {
  /**
   * Decodes a request.
   *
   * @throws ConnectError `InvalidArgument` if the bytes are not a valid message
   */
  decode(bytes: Uint8Array): Message;
  /**
   * Encodes a response into bytes that share no memory with the message.
   *
   * @throws ConnectError `Internal` if the message cannot be encoded, `ResourceExhausted` if it exceeds `writeMaxBytes`
   */
  encode(message: Message): Uint8Array;
  /** Whether requests with unknown fields are refused. */
  readonly refusesUnknownFields?: boolean | undefined;
  /** Set if received messages are forwarded without being decoded. */
  readonly envelopes?: EnvelopeCodec | undefined;
}

/** Forwards messages in their received envelopes. Compressed messages are decoded instead. */
export interface EnvelopeCodec {
  /** The memory of received envelopes. "shared" is allowed only if no application gets their bytes. */
  readonly memory: BodyMemory;
  /** Returns a message that keeps its envelope. */
  open(envelope: Uint8Array): Message;
  /** Returns the received envelope of a message, to be sent unchanged; `undefined` if the message must be encoded. */
  of(message: unknown): Uint8Array | undefined;
  /** Set if large messages need not be complete when they are forwarded. */
  readonly parts?: PartCodec | undefined;
}

/** Forwards large messages in the parts in which they are received. {@link EnvelopeCodec.of} returns a part unchanged. */
export interface PartCodec {
  /** Returns a part of an envelope, which takes the place of a message. The first part is the prefix. */
  open(part: Uint8Array, isFirst: boolean): Message;
  /** Returns the message of a caller that must send exactly one, whose parts are read while it is forwarded. */
  join(parts: AsyncIterable<Message>): Message;
  /** Returns whether a message is a part, which is never compressed. */
  isPart(message: unknown): boolean;
}
