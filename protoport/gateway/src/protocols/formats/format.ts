import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { ReadJsonOptions } from "../../protobuf/index.ts";

/**
 * A format's name. Outside the folder `formats`, code that differs per format uses a `Record<FormatName, …>`. A new
 * format then causes compile errors until every record includes the format.
 */
export type FormatName = "json" | "proto";

/**
 * A message encoding in RPC protocols. To add a format, add a file to the folder `formats`, a {@link FormatName} and an
 * item to the list in `formats.ts`.
 */
export interface Format {
  /** The name in content types (`application/grpc+proto`) and in Connect's query (`encoding=proto`). */
  readonly name: FormatName;
  /** Whether the format is text. Only text formats' content types may have a charset. */
  readonly isText: boolean;
  createCodec(method: DescMethod, options: UniversalHandlerOptions, jsonRules: ReadJsonOptions): Codec;
}

/** Converts one RPC's messages to and from bytes, in one format. */
export interface Codec {
  /** Decodes a request. @throws ConnectError `InvalidArgument` if the bytes are not a valid message */
  decode(bytes: Uint8Array): Message;
  /**
   * Encodes a response into bytes that share no memory with the message.
   *
   * @throws ConnectError `Internal` for a message that cannot be encoded, `ResourceExhausted` above `writeMaxBytes`
   */
  encode(message: Message): Uint8Array;
  /** Whether requests with unknown fields are refused. */
  readonly refusesUnknownFields?: boolean | undefined;
  /** Whether the codec's format is the binary format, in which messages are forwarded. */
  readonly isBinary?: boolean;
}
