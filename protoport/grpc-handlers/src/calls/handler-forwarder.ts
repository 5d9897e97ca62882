import type { DescField, DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
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
  readonly #normalize: ReturnType<typeof createTimestampNormalizer>;

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
    this.#normalize = createTimestampNormalizer(desc.output);
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
      this.#normalize?.(message);
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

/**
 * Returns a function that makes the `nanos` of timestamps in a message positive, or `undefined` if the type contains no
 * timestamp. ts-proto writes a `Date` before 1970 with negative `nanos` if it has milliseconds, which JSON cannot have.
 */
function createTimestampNormalizer(desc: DescMessage): ((message: Message) => void) | undefined {
  const fieldsOf = findTimestampFields(desc);
  if (!fieldsOf.has(desc) && desc.typeName !== timestampName) return undefined;
  const normalize = (type: DescMessage, message: object): void => {
    if (type.typeName === timestampName) return makePositive(message);
    for (const field of fieldsOf.get(type) ?? []) {
      const { message: inner } = field;
      if (inner === undefined) continue;
      for (const each of messagesInField(field, message)) normalize(inner, each);
    }
  };
  return (message) => normalize(desc, message);
}

/** Returns the fields of a message type, and of all types in it, that contain timestamps at any depth. */
function findTimestampFields(desc: DescMessage): ReadonlyMap<DescMessage, readonly DescField[]> {
  const types = new Set([desc]);
  for (const type of types) for (const { message } of type.fields) if (message !== undefined) types.add(message);
  const found = new Map<DescMessage, readonly DescField[]>();
  const contains = ({ message }: DescField): boolean =>
    message !== undefined && (message.typeName === timestampName || found.has(message));
  // Each round finds types that contain the types of the rounds before.
  for (let size = -1; size < found.size;) {
    size = found.size;
    for (const type of types) {
      const fields = type.fields.filter(contains);
      if (fields.length > 0) found.set(type, fields);
    }
  }
  return found;
}

/** Returns the messages in a field, which may be a list, a map or a member of a oneof. */
function messagesInField({ fieldKind, localName, oneof }: DescField, message: object): readonly object[] {
  const owner: unknown = oneof === undefined ? message : Reflect.get(message, oneof.localName);
  if (oneof !== undefined && Reflect.get(Object(owner), "case") !== localName) return [];
  const value: unknown = Reflect.get(Object(owner), oneof === undefined ? localName : "value");
  if (typeof value !== "object" || value === null) return [];
  return fieldKind === "message" ? [value] : Object.values(value);
}

function makePositive(timestamp: { seconds?: bigint; nanos?: number }): void {
  const { seconds = 0n, nanos = 0 } = timestamp;
  if (nanos >= 0 || nanos <= -1e9) return;
  timestamp.seconds = seconds - 1n;
  timestamp.nanos = nanos + 1e9;
}
