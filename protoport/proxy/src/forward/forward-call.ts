import { AsyncResource } from "node:async_hooks";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { ConnectError, type ConnectRouterOptions } from "@connectrpc/connect";
import type { HiddenParts } from "@protoport/gateway/descriptors";
import { problem } from "@protoport/gateway/errors";
import type { BodyMemory, HeaderFields } from "@protoport/gateway/exchange";
import {
  type Caller,
  Envelope,
  envelopeBytes,
  type ForwardedMessage,
  type Forwarder,
  LazyHeaders,
  type ProtocolName,
  type Reply,
  toEnvelope,
} from "@protoport/gateway/forward";
import { createBinaryReader, createBinaryWriter } from "@protoport/gateway/messages";
import {
  type CallInit,
  ClientMethod,
  messageEncodingError,
  OutgoingStream,
  OutgoingUnary,
  type RequestFields,
  type Retries,
} from "../client/index.ts";
import { defaultRestTimeoutMs, type Upstream } from "../upstreams/index.ts";
import { type AddedFields, type ForwardedFields, noAddedFields } from "./forward-rules.ts";
import type { UpstreamCallObserver } from "./observe-calls.ts";
import { descriptorMismatchError, malformedResponseError, transportError } from "./upstream-errors.ts";

/** An RPC with the settings for forwarding its calls. */
export interface ForwardTarget {
  readonly upstream: Upstream;
  readonly method: ForwardedMethod;
  readonly binaryOptions: ConnectRouterOptions["binaryOptions"];
  /** The hidden elements, which the proxy must not forward, or `undefined` if no element is hidden. */
  readonly hidden: HiddenParts | undefined;
  /** Whether the RPC's messages may contain hidden elements. */
  readonly isRestricted: boolean;
  readonly retries: Retries;
  readonly requestFields: ForwardedFields;
  readonly responseFields: ForwardedFields;
  /** Timeout in milliseconds for unary calls without a deadline. 0 means no timeout, and `undefined` the default. */
  readonly timeoutMs: number | undefined;
  /** Maximum timeout in milliseconds, or `undefined` for no maximum. Also the default timeout for unary calls. */
  readonly maxTimeoutMs: number | undefined;
  /** Observer that is called when a call starts. */
  readonly observe: UpstreamCallObserver | undefined;
}

/** An RPC that sends and receives messages as encoded bytes. */
export class ForwardedMethod extends ClientMethod<ForwardedMessage> {
  /** Shared blocks are safe, because applications never get the bytes: interceptors get messages from a copy. */
  override get memory(): BodyMemory {
    return "shared";
  }

  override get openPart(): (part: Uint8Array) => ForwardedMessage {
    return unchangedMessage;
  }

  envelop(message: ForwardedMessage): Uint8Array {
    return message instanceof Envelope ? message.withPrefix : message;
  }

  protected read(envelope: Envelope): ForwardedMessage {
    return envelope;
  }
}

function unchangedMessage(part: Uint8Array): ForwardedMessage {
  return part;
}

/** Forwards an RPC's calls to its upstream. */
export class UpstreamForwarder implements Forwarder {
  readonly memory = "shared";
  readonly isIdentityField: ForwardedFields["isIdentityField"];
  readonly decodes: boolean;
  readonly #target: ForwardTarget;
  readonly #write: ReturnType<typeof createBinaryWriter>;
  readonly #read: ReturnType<typeof createBinaryReader>;

  constructor(target: ForwardTarget) {
    const { method, binaryOptions } = target;
    this.isIdentityField = target.requestFields.isIdentityField;
    this.decodes = target.isRestricted;
    this.#target = target;
    this.#write = createBinaryWriter(method.desc.input, binaryOptions);
    this.#read = createBinaryReader(method.desc.output, binaryOptions);
  }

  unary(caller: Caller, request: Envelope, reply: Reply): void {
    new ForwardedUnary(this.#target, caller, request.withPrefix, reply).start();
  }

  stream(caller: Caller, requests: AsyncIterable<ForwardedMessage>): AsyncIterable<ForwardedMessage> {
    const call = new ForwardedStream(this.#target, caller, requests);
    call.start();
    const { messages } = call;
    switch (this.#target.method.desc.methodKind) {
      case "unary":
        return requireSingle(messages);
      case "client_streaming":
        return onceComplete(requireSingle(messages));
      default:
        return messages;
    }
  }

  /** @throws ConnectError `Internal` if the message cannot be encoded */
  encode(message: Message): Envelope {
    const { hidden, isRestricted, method } = this.#target;
    if (isRestricted) hidden?.removeFromRequest(method.desc.input, message);
    try {
      return toEnvelope(this.#write(message));
    } catch (error) {
      throw messageEncodingError(error);
    }
  }

  /** @throws ConnectError `Internal` if the message does not match the descriptors */
  decode(bytes: Uint8Array): Message {
    try {
      const message = this.#read(bytes);
      const { hidden, isRestricted, method } = this.#target;
      if (isRestricted) hidden?.removeFrom(method.desc.output, message);
      return message;
    } catch (error) {
      throw descriptorMismatchError(this.#target.method.desc.output.typeName, error);
    }
  }
}

/** Yields a response's only message, or its chunks. @throws ConnectError `Internal` unless there is one message */
async function* requireSingle(messages: AsyncIterable<ForwardedMessage>): AsyncGenerator<ForwardedMessage> {
  /** How many message bytes have not arrived, or `undefined` before the message starts. */
  let missingBytes: number | undefined;
  for await (const message of messages) {
    const bytes = message instanceof Envelope ? 1 : message.byteLength;
    missingBytes ??= message instanceof Envelope ? 1 : envelopeBytes(message);
    missingBytes -= bytes;
    if (missingBytes < 0)
      throw problem("ERR_UPSTREAM_RESPONSE", "the response of the service has more than one message");
    yield message;
  }
  if (missingBytes === undefined) throw problem("ERR_UPSTREAM_RESPONSE", "the response of the service has no message");
}

/** Yields a response's messages once the call has succeeded. */
async function* onceComplete(messages: AsyncIterable<ForwardedMessage>): AsyncGenerator<ForwardedMessage> {
  const complete: ForwardedMessage[] = [];
  for await (const message of messages) complete.push(message);
  yield* complete;
}

function initOf(target: ForwardTarget, caller: Caller): CallInit<ForwardedMessage> {
  const { upstream, method, retries, observe } = target;
  const { signal, streamsLargeResponses } = caller;
  // Created before the call, so that an error in the application's `set` is not reported as an upstream error.
  const metadata = new ResponseMetadata(caller, target.responseFields);
  const timeoutMs = timeoutOf(target, caller, method.desc);
  const onEnd = observe?.({ upstream, method: method.desc, contextValues: caller.request.contextValues });
  try {
    const fields = forwardHeader(caller, target.requestFields);
    return { upstream, method, fields, signal, timeoutMs, retries, streamsLargeResponses, metadata, onEnd };
  } catch (error) {
    onEnd?.({ error: ConnectError.from(error), durationMs: 0, queuedMs: 0, retries: 0 });
    throw error;
  }
}

/** Timeouts for unary calls if neither the caller nor the options set a timeout. 0 means no timeout. */
const defaultTimeoutsMs: Readonly<Record<ProtocolName, number>> = {
  connect: 0,
  grpc: 0,
  "grpc-web": 0,
  mcp: 0,
  rest: defaultRestTimeoutMs,
};

function timeoutOf(
  { timeoutMs, maxTimeoutMs }: ForwardTarget,
  caller: Caller,
  { methodKind }: DescMethod,
): number | undefined {
  const defaultMs = timeoutMs ?? maxTimeoutMs ?? defaultTimeoutsMs[caller.request.protocol];
  const requestedMs = caller.timeoutMs() ?? (methodKind === "unary" ? defaultMs || maxTimeoutMs : undefined);
  if (requestedMs === undefined) return undefined;
  // At least 1 ms, so that the call itself reports a deadline that has just passed.
  return Math.max(1, Math.min(requestedMs, maxTimeoutMs ?? requestedMs));
}

class ForwardedUnary extends OutgoingUnary<ForwardedMessage> {
  /** Runs callbacks in this call's async context, because the connection was opened in another context. */
  readonly #async = new AsyncResource("ForwardedUnary");
  readonly #target: ForwardTarget;
  readonly #reply: Reply;

  constructor(target: ForwardTarget, caller: Caller, request: Uint8Array, reply: Reply) {
    super(initOf(target, caller), request);
    this.#target = target;
    this.#reply = reply;
  }

  protected override succeeded(message: ForwardedMessage): void {
    if (message instanceof Envelope) this.#async.runInAsyncScope(() => this.#reply.resolve(message));
  }

  protected override receivedLarge(parts: AsyncIterable<ForwardedMessage>): void {
    this.#async.runInAsyncScope(() => this.#reply.resolveAll(requireSingle(parts)));
  }

  override malformedError(error: ConnectError): ConnectError {
    return malformedResponseError(error);
  }

  protected override rejected(error: ConnectError): void {
    this.#async.runInAsyncScope(() => this.#reply.reject(error));
  }

  protected override failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    const reported = reportedError(this.#target, error, trailer);
    if (!this.failParts(reported, trailer !== undefined)) this.rejected(reported);
  }
}

class ForwardedStream extends OutgoingStream<ForwardedMessage> {
  readonly #target: ForwardTarget;

  constructor(target: ForwardTarget, caller: Caller, requests: AsyncIterable<ForwardedMessage>) {
    super(initOf(target, caller), requests);
    this.#target = target;
  }

  override malformedError(error: ConnectError): ConnectError {
    return malformedResponseError(error);
  }

  protected override failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    super.failed(reportedError(this.#target, error, trailer), trailer);
  }
}

/** Returns the error that the caller gets. @param trailer - `undefined` if the upstream has not sent the error */
function reportedError(
  { hidden }: ForwardTarget,
  error: ConnectError,
  trailer: HeaderFields | undefined,
): ConnectError {
  if (trailer === undefined) return transportError(error);
  return hidden?.removeFromDetails(error) ?? error;
}

/** Whether callers' credentials are forwarded. A credential for an MCP server must not be passed on. */
const forwardsCredential: Readonly<Record<ProtocolName, boolean>> = {
  connect: true,
  grpc: true,
  "grpc-web": true,
  mcp: false,
  rest: true,
};

/** Returns the fields in a caller's header that are forwarded to the upstream. */
export function forwardHeader({ request, headers }: Caller, fields: ForwardedFields): RequestFields {
  const { requestHeader } = headers;
  const fieldList = requestHeader instanceof LazyHeaders ? requestHeader.fields : [...requestHeader].flat();
  const added = fields.added(request);
  const isHidden = !forwardsCredential[request.protocol] && !fields.forwardsMcpCredential;
  return fields.select(isHidden ? withoutCredential(fieldList) : fieldList, added);
}

/** Drops the field `authorization` by its received name, so that no rule can rename the credential. */
function withoutCredential(fields: HeaderFields): HeaderFields {
  return fields.filter((_, at) => fields[at - (at % 2)]?.toLowerCase() !== "authorization");
}

/** Forwards an upstream response's header and trailer to the caller. */
export class ResponseMetadata {
  readonly #caller: Caller;
  readonly #fields: ForwardedFields;
  /** Computed before the call is sent, so that an error in `set` is not reported as an upstream error. */
  readonly #added: AddedFields;

  constructor(caller: Caller, fields: ForwardedFields) {
    this.#caller = caller;
    this.#fields = fields;
    this.#added = fields.added(caller.request);
  }

  /** Forwards the header section. A trailers-only response has no header section. */
  header(fields: HeaderFields): void {
    append(this.#caller.headers.responseHeader, this.#fields.select(fields, this.#added).fields);
    this.#caller.begin();
  }

  trailer(fields: HeaderFields): void {
    append(this.#caller.headers.responseTrailer, this.#fields.select(fields, noAddedFields).fields);
  }
}

function append(headers: Headers, fields: HeaderFields): void {
  for (let at = 0; at < fields.length; at += 2) headers.append(fields[at] ?? "", fields[at + 1] ?? "");
}
