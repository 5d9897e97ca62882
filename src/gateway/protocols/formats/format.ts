import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { ReadJsonOptions } from "../../json/index.ts";

/**
 * An encoding of messages in RPC protocols. A new one is a file of this folder and an item of the list in `formats.ts`.
 */
export interface Format {
  /** The name in content types (`application/grpc+proto`) and in the query of Connect (`encoding=proto`). */
  readonly name: string;
  /** Whether it is text, so that its content types may have a charset. */
  readonly isText: boolean;
  createCodec(method: DescMethod, options: UniversalHandlerOptions, jsonRules: ReadJsonOptions): Codec;
}

/** Converts the messages of one RPC to and from bytes, in one format. */
export interface Codec {
  /** Whether no program gets to see the bytes of messages, because they are passed on. */
  readonly isUnseen?: boolean;
  /**
   * Decodes a request.
   *
   * @param isEnveloped - whether the bytes follow the prefix of their envelope in memory, and are not compressed in it
   * @throws ConnectError `InvalidArgument`
   */
  decode(bytes: Uint8Array, isEnveloped?: boolean): Message;
  /**
   * Encodes a response, to bytes that share no memory with the message.
   *
   * @throws ConnectError `Internal`, or `ResourceExhausted` over `writeMaxBytes`
   */
  encode(message: Message): Uint8Array;
  /** Returns the envelope that a message came in, to be sent as it is; `undefined` if the message is to be encoded. */
  envelopeOf?(message: Message): Uint8Array | undefined;
}
