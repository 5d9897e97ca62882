import type { DescMethod, Message } from "@bufbuild/protobuf";
import { createBinaryReader, createBinaryWriter } from "@protoport/gateway/messages";
import {
  type Envelope,
  type ForwardedMessage,
  toEnvelope,
  type Caller,
  type Forwarder,
  type Reply,
  toFault,
} from "@protoport/gateway/forward";
import { BaseCall, type MethodCodec } from "./base-call.ts";
import { createTimestampNormalizer } from "./normal-timestamps.ts";
import { createRequestReader } from "./read-request.ts";
import { SingleResponse, StreamedResponse, UnaryResponse } from "./response.ts";
import { serveCall, type ServedMethod } from "./serve-call.ts";
import { createResponseWriter } from "./write-response.ts";

/** Passes an RPC's calls to a grpc-js handler. */
export class HandlerForwarder implements Forwarder {
  readonly memory = "own";
  readonly decodes = false;
  readonly #desc: DescMethod;
  readonly #method: ServedMethod;
  readonly #codec: MethodCodec;
  readonly #write: ReturnType<typeof createBinaryWriter>;
  readonly #read: ReturnType<typeof createBinaryReader>;
  readonly #normalize: ReturnType<typeof createTimestampNormalizer>;

  /** @param desc - describes the messages for JSON */
  constructor(desc: DescMethod, method: ServedMethod) {
    this.#desc = desc;
    this.#method = method;
    const { definition, encode, toMessage } = method;
    this.#codec = {
      definition,
      readRequest: createRequestReader(definition),
      writeResponse: createResponseWriter(definition, encode),
      toMessage,
    };
    this.#write = createBinaryWriter(desc.input, undefined);
    this.#read = createBinaryReader(desc.output, undefined);
    this.#normalize = createTimestampNormalizer(desc.output);
  }

  unary(caller: Caller, request: Envelope, reply: Reply): void {
    serveCall(new BaseCall(this.#codec, caller, request, new UnaryResponse(reply, caller.headers)), this.#method);
  }

  stream(caller: Caller, requests: AsyncIterable<ForwardedMessage>): AsyncIterable<ForwardedMessage> {
    const response = this.#codec.definition.responseStream ? new StreamedResponse() : new SingleResponse();
    serveCall(new BaseCall(this.#codec, caller, requests, response), this.#method);
    return response;
  }

  encode(message: Message): Envelope {
    return toEnvelope(this.#write(message));
  }

  /** @throws ConnectError `Internal` if the message does not match the descriptor */
  decode(bytes: Uint8Array): Message {
    try {
      const message = this.#read(bytes);
      this.#normalize?.(message);
      return message;
    } catch (error) {
      const what = `a response does not match the descriptor of ${this.#desc.output.typeName}`;
      throw toFault(error, { errorCode: "ERR_RESPONSE_FAILED", what });
    }
  }
}
