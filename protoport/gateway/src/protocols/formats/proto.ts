import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { createBinaryReader, createBinaryWriter, problem } from "../../protobuf/index.ts";
import { noBytes } from "../../http/index.ts";
import type { Codec, Format } from "./format.ts";
import { serialize } from "./serialize.ts";

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
