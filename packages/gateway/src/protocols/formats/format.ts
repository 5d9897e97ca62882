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
  /** Whether it is text, whose content types may have a charset. */
  readonly isText: boolean;
  createCodec(method: DescMethod, options: UniversalHandlerOptions, jsonRules: ReadJsonOptions): Codec;
}

/** Converts the messages of one RPC to and from bytes, in one format. */
export interface Codec {
  /**
   * Decodes a request.
   *
   * @throws ConnectError `InvalidArgument`
   */
  decode(bytes: Uint8Array): Message;
  /**
   * Encodes a response into bytes that share no memory with the message.
   *
   * @throws ConnectError `Internal`, or `ResourceExhausted` over `writeMaxBytes`
   */
  encode(message: Message): Uint8Array;
  /** For messages that are forwarded without being decoded; `undefined` for all others. */
  readonly envelopes?: EnvelopeCodec | undefined;
}

/** Forwards messages in their received envelopes, unless these are compressed. */
export interface EnvelopeCodec {
  /** The memory of received envelopes: "shared" only if no program sees their bytes. */
  readonly memory: BodyMemory;
  /** Returns a message that keeps its envelope. */
  open(envelope: Uint8Array): Message;
  /** Returns the received envelope of a message, to be sent unchanged; `undefined` if the message must be encoded. */
  of(message: unknown): Uint8Array | undefined;
}
