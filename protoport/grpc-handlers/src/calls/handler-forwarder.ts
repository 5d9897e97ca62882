import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type Caller,
  Envelope,
  type ForwardedMessage,
  type Forwarder,
  type Reply,
  toEnvelope,
  toFault,
} from "@protoport/gateway/forward";
import { createBinaryReader, createBinaryWriter } from "@protoport/gateway/messages";
import { type AnyDefinition, BaseCall, type MethodCodec } from "./base-call.ts";
import { SingleResponse, StreamedResponse, UnaryResponse } from "./response.ts";
import { serveHandlerCall, type ServedMethod } from "./serve-call.ts";
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
  readonly #hasTimestamps: boolean;

  /** @param desc - describes the messages for JSON */
  constructor(desc: DescMethod, method: ServedMethod) {
    this.#desc = desc;
    this.#method = method;
    const { definition, encode, toMessage } = method;
    this.#codec = {
      definition,
      readRequest: createMessageReader(definition),
      writeResponse: createResponseWriter(definition, encode),
      toMessage,
    };
    this.#write = createBinaryWriter(desc.input, undefined);
    this.#read = createBinaryReader(desc.output, undefined);
    this.#hasTimestamps = containsTimestamps(desc.output);
  }

  unary(caller: Caller, request: Envelope, reply: Reply): void {
    serveHandlerCall(
      new BaseCall(this.#codec, caller, request, new UnaryResponse(reply, caller.headers)),
      this.#method,
    );
  }

  stream(caller: Caller, requests: AsyncIterable<ForwardedMessage>): AsyncIterable<ForwardedMessage | Message> {
    const response = this.#codec.definition.responseStream ? new StreamedResponse() : new SingleResponse();
    serveHandlerCall(new BaseCall(this.#codec, caller, requests, response), this.#method);
    return response;
  }

  encode(message: Message): Envelope {
    return toEnvelope(this.#write(message));
  }

  /** @throws ConnectError `Internal` if the message does not match the descriptor */
  decode(bytes: Uint8Array): Message {
    try {
      const message = this.#read(bytes);
      if (this.#hasTimestamps) normalizeTimestamps(message);
      return message;
    } catch (error) {
      const what = `a response does not match the descriptor of ${this.#desc.output.typeName}`;
      throw toFault(error, { errorCode: "ERR_RESPONSE_FAILED", what });
    }
  }
}

/**
 * Returns a function that reads a method's requests with its `requestDeserialize`.
 *
 * A request that cannot be read fails with `InvalidArgument`. A method's first error is also reported to `onFault`,
 * because the definition may be wrong. Later errors are not reported, because a client can repeat them.
 */
function createMessageReader({ requestDeserialize, path }: AnyDefinition): (message: ForwardedMessage) => unknown {
  let isReported = false;
  return (message) => {
    if (!(message instanceof Envelope)) throw new TypeError("a message that is decoded must be complete");
    const { buffer, byteOffset, byteLength } = message.bytes;
    try {
      return requestDeserialize(Buffer.from(buffer, byteOffset, byteLength));
    } catch (cause) {
      const text = "the request does not match its definition";
      const error = new ConnectError(text, Code.InvalidArgument, undefined, undefined, cause);
      if (isReported) throw error;
      isReported = true;
      throw toFault(error, { errorCode: "ERR_HANDLER_FAILED", what: `requestDeserialize of ${path} failed` });
    }
  };
}

const timestampName = "google.protobuf.Timestamp";

/** Returns whether a message type is a timestamp, or contains timestamps at any depth. */
function containsTimestamps(desc: DescMessage): boolean {
  const types = new Set([desc]);
  for (const type of types) for (const { message } of type.fields) if (message !== undefined) types.add(message);
  return [...types].some(({ typeName }) => typeName === timestampName);
}

/**
 * Makes the `nanos` of timestamps in a message positive. ts-proto writes a `Date` before 1970 with negative `nanos` if it
 * has milliseconds, which JSON cannot have.
 */
function normalizeTimestamps(value: object): void {
  const { seconds, nanos }: { seconds?: unknown; nanos?: unknown } = value;
  const isTimestamp = Reflect.get(value, "$typeName") === timestampName;
  // The JSON of a google.protobuf.Struct may resemble a timestamp, but contains no bigint.
  if (isTimestamp && typeof seconds === "bigint" && typeof nanos === "number") {
    if (nanos < 0 && nanos > -1e9) Object.assign(value, { seconds: seconds - 1n, nanos: nanos + 1e9 });
    return;
  }
  for (const each of Object.values(value)) {
    if (typeof each === "object" && each !== null && !ArrayBuffer.isView(each)) normalizeTimestamps(each);
  }
}
