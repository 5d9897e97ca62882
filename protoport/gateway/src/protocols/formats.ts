import type { DescMethod, Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { noBytes, toUtf8 } from "../http/index.ts";
import {
  createBinaryReader,
  createBinaryWriter,
  createJsonMessageWriter,
  problem,
  readJson,
  type ReadJsonOptions,
} from "../protobuf/index.ts";
import type { Envelope, Take } from "./envelope/envelope.ts";

/**
 * A format's name. Outside this file, code that differs per format uses a `Record<FormatName, …>`. A new format then
 * causes compile errors until every record includes the format.
 */
export type FormatName = "json" | "proto";

/**
 * A message encoding in RPC protocols. To add a format, add a constant like {@link proto}, a {@link FormatName} and an
 * item to {@link formats}.
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

/** The ProtoJSON format, which is parsed strictly. */
const json: Format = {
  name: "json",
  isText: true,
  createCodec: (method, options, jsonRules) => new JsonCodec(method, options, jsonRules),
};

/** A codec for ProtoJSON. The writer is created on first use, because many RPCs may never be called. */
class JsonCodec implements Codec {
  readonly refusesUnknownFields: boolean;
  readonly #method: DescMethod;
  readonly #options: UniversalHandlerOptions;
  readonly #rules: ReadJsonOptions;
  #write: ReturnType<typeof createJsonMessageWriter> | undefined;

  constructor(method: DescMethod, options: UniversalHandlerOptions, rules: ReadJsonOptions) {
    this.#method = method;
    this.#options = options;
    this.#rules = rules;
    this.refusesUnknownFields = rules.unknownFields !== "ignore";
  }

  decode(bytes: Uint8Array): Message {
    return readJson(this.#method.input, bytes, this.#rules);
  }

  encode(message: Message): Uint8Array {
    const write = (this.#write ??= createJsonMessageWriter(this.#method.output, this.#options.jsonOptions));
    return serialize(() => toUtf8(write(message)), this.#options.writeMaxBytes);
  }
}

/** The binary Protocol Buffers wire format. */
export const proto: Format = {
  name: "proto",
  isText: false,
  createCodec: (method, options) => new ProtoCodec(method, options),
};

/** A codec for the binary format. Reader and writer are compiled on first use, because many RPCs are never called. */
class ProtoCodec implements Codec {
  readonly isBinary = true;
  readonly #method: DescMethod;
  readonly #options: UniversalHandlerOptions;
  readonly #read: ReturnType<typeof createBinaryReader>;
  #write: ReturnType<typeof createBinaryWriter> | undefined;

  constructor(method: DescMethod, options: UniversalHandlerOptions) {
    this.#method = method;
    this.#options = options;
    this.#read = createBinaryReader(method.input, options.binaryOptions);
  }

  decode(bytes: Uint8Array): Message {
    try {
      return this.#read(bytes);
    } catch (error) {
      // The code is InvalidArgument, because the client sent the message. connect-node responds with Internal.
      const message = `the message is not a valid ${this.#method.input.typeName}`;
      throw problem("ERR_MESSAGE_INVALID", message, { cause: error });
    }
  }

  encode(message: Message): Uint8Array {
    const { output } = this.#method;
    // Skips the writer for messages without fields, such as google.protobuf.Empty, which many RPCs return.
    if (output.fields.length === 0 && message.$unknown === undefined) return noBytes;
    const write = (this.#write ??= createBinaryWriter(output, this.#options.binaryOptions));
    return serialize(() => write(message), this.#options.writeMaxBytes);
  }
}

const byName: Readonly<Record<FormatName, Format>> = { proto, json };

/** The RPC protocols' formats. A content type without a format, such as `application/grpc`, means the first format. */
export const formats: readonly Format[] = /* @__PURE__ */ Object.values(byName);

/** One RPC's codecs. */
export type MethodCodecs = Readonly<Record<FormatName, Codec>>;

/** Returns the function that decodes requests in the binary format for a handler. */
export function takeMessages({ proto: codec }: MethodCodecs): Take<Message> {
  return ({ bytes }) => codec.decode(bytes);
}

/** Passes on a request in the binary format unchanged, to an upstream. */
export function takeEnvelopes(envelope: Envelope): Envelope {
  return envelope;
}

/** Creates an RPC's codecs from Connect's options. */
export function createMethodCodecs(
  method: DescMethod,
  options: UniversalHandlerOptions,
  jsonRules: ReadJsonOptions,
): MethodCodecs {
  return {
    proto: proto.createCodec(method, options, jsonRules),
    json: json.createCodec(method, options, jsonRules),
  };
}

/** Serializes a response. @throws ConnectError `Internal` if `write` throws, `ResourceExhausted` above the limit */
export function serialize(write: () => Uint8Array, writeMaxBytes: number): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = write();
  } catch (error) {
    throw problem("ERR_RESPONSE_FAILED", "the response cannot be serialized", { cause: error });
  }
  if (bytes.byteLength <= writeMaxBytes) return bytes;
  const message = `message size ${bytes.byteLength} is larger than configured writeMaxBytes ${writeMaxBytes}`;
  // Connect, which defines `writeMaxBytes`, also uses the code ResourceExhausted.
  throw problem("ERR_RESPONSE_FAILED", message, { code: Code.ResourceExhausted });
}
