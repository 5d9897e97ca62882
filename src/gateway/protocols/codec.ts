import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { codedError } from "../errors/index.ts";
import { createBinaryReader, createBinaryWriter } from "../binary/index.ts";
import { noBytes, toUtf8 } from "../carriers/index.ts";
import { createJsonMessageWriter, type ReadJsonOptions, readJson } from "../json/index.ts";

/** A format in which RPC protocols write messages: its name, and what reads and writes it. */
export interface Format {
  /** The name in content types, `application/grpc+proto`, and in the query of Connect, `encoding=proto`. */
  readonly name: string;
  /** Whether it is text, whose content types may have a charset. */
  readonly isText: boolean;
  createCodec(method: DescMethod, options: UniversalHandlerOptions, jsonRules: ReadJsonOptions): Codec;
}

/** Converts between messages and bytes, in one format. */
export interface Codec {
  /** Whether no program gets to see the bytes of messages, because they are passed on. */
  readonly isUnseen?: boolean;
  /**
   * @param isEnveloped - whether the bytes follow the prefix of their envelope in memory, and are not compressed in it
   * @throws ConnectError `InvalidArgument`
   */
  decode(bytes: Uint8Array, isEnveloped?: boolean): Message;
  /**
   * Returns bytes that share no memory with the message.
   *
   * @throws ConnectError `Internal`, or `ResourceExhausted` over `writeMaxBytes`
   */
  encode(message: Message): Uint8Array;
  /** Returns the envelope that a message came in, to be sent as it is; `undefined` if the message is to be encoded. */
  envelopeOf?(message: Message): Uint8Array | undefined;
}

const proto: Format = {
  name: "proto",
  isText: false,
  createCodec: (method, options) => new BinaryCodec(method, options),
};

/** JSON is read strictly, by `json/`. */
const json: Format = {
  name: "json",
  isText: true,
  createCodec: (method, options, jsonRules) => new JsonCodec(method, options, jsonRules),
};

/** The formats of RPC protocols; the first is meant by a content type that names none, such as `application/grpc`. */
export const formats: readonly [Format, ...Format[]] = [proto, json];

/** The codecs of one RPC, which decode requests and encode responses, by the names of their formats. */
export type MethodCodecs = ReadonlyMap<string, Codec>;

/** Creates the codecs of an RPC from Connect's options. */
export function createMethodCodecs(
  method: DescMethod,
  options: UniversalHandlerOptions,
  jsonRules: ReadJsonOptions,
): MethodCodecs {
  return new Map(formats.map((format) => [format.name, format.createCodec(method, options, jsonRules)]));
}

/** Like {@link JsonCodec}, makes what reads and writes with its first call: of many RPCs, a process may serve few. */
class BinaryCodec implements Codec {
  readonly #method: DescMethod;
  readonly #options: UniversalHandlerOptions;
  #read: ReturnType<typeof createBinaryReader> | undefined;
  #write: ReturnType<typeof createBinaryWriter> | undefined;

  constructor(method: DescMethod, options: UniversalHandlerOptions) {
    this.#method = method;
    this.#options = options;
  }

  decode(bytes: Uint8Array): Message {
    const { input } = this.#method;
    const read = (this.#read ??= createBinaryReader(input, this.#options.binaryOptions));
    return decode(input, () => read(bytes));
  }

  encode(message: Message): Uint8Array {
    const { output } = this.#method;
    // Many RPCs return google.protobuf.Empty, and to encode nothing costs as much as to encode something.
    if (output.fields.length === 0 && message.$unknown === undefined) return noBytes;
    const write = (this.#write ??= createBinaryWriter(output, this.#options.binaryOptions));
    return serialize(() => write(message), this.#options.writeMaxBytes);
  }
}

class JsonCodec implements Codec {
  readonly #method: DescMethod;
  readonly #options: UniversalHandlerOptions;
  readonly #rules: ReadJsonOptions;
  #write: ReturnType<typeof createJsonMessageWriter> | undefined;

  constructor(method: DescMethod, options: UniversalHandlerOptions, rules: ReadJsonOptions) {
    this.#method = method;
    this.#options = options;
    this.#rules = rules;
  }

  decode(bytes: Uint8Array): Message {
    return readJson(this.#method.input, bytes, this.#rules);
  }

  encode(message: Message): Uint8Array {
    const write = (this.#write ??= createJsonMessageWriter(this.#method.output, this.#options.jsonOptions));
    return serialize(() => toUtf8(write(message)), this.#options.writeMaxBytes);
  }
}

// A malformed message is the client's mistake; connect-node answers Internal here.
function decode(desc: DescMessage, read: () => Message): Message {
  try {
    return read();
  } catch (error) {
    const message = `the message is not a valid ${desc.typeName}`;
    throw codedError("ERR_MESSAGE_INVALID", message, Code.InvalidArgument, error);
  }
}

function serialize(write: () => Uint8Array, writeMaxBytes: number): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = write();
  } catch (error) {
    throw codedError("ERR_ANSWER_FAILED", "the response cannot be serialized", Code.Internal, error);
  }
  if (bytes.byteLength <= writeMaxBytes) return bytes;
  const message = `message size ${bytes.byteLength} is larger than configured writeMaxBytes ${writeMaxBytes}`;
  throw codedError("ERR_ANSWER_FAILED", message, Code.ResourceExhausted);
}
