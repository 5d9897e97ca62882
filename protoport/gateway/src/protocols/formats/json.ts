import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { toUtf8 } from "../../http/index.ts";
import { createJsonMessageWriter, type ReadJsonOptions, readJson } from "../../protobuf/index.ts";
import type { Codec, Format } from "./format.ts";
import { serialize } from "./serialize.ts";

/** The ProtoJSON format, which is parsed strictly. */
export const json: Format = {
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
