import { AsyncResource } from "node:async_hooks";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { HeaderFields } from "@plantstore/gateway/exchange";
import {
  type CallInit,
  type ClientMethod,
  type Retries,
  StreamCall,
  type StreamCallResponse,
  UnaryCall,
} from "../client/index.ts";
import { problem, errorCodeOf } from "@plantstore/gateway/internal/errors";
import type { ProtocolName, Reply } from "@plantstore/gateway/internal/protocols";
import { defaultRestTimeoutMs, type Upstream } from "../upstreams/index.ts";
import { requestOf, writesParts } from "@plantstore/gateway/internal/serve";
import { cancelSignalOf } from "./call-abort.ts";
import type { ForwardedFields } from "./forward-rules.ts";
import { ResponseMetadata, forwardHeader } from "./forwarded-metadata.ts";
import type { UpstreamCallObserver } from "./observe-calls.ts";
import { LargeMessage, requireSingle } from "./opaque-message.ts";
import { transportError, malformedResponse } from "./upstream-errors.ts";

/** An RPC, and how its calls are forwarded. */
export interface ForwardTarget {
  readonly upstream: Upstream;
  readonly method: ClientMethod;
  /** Decodes a message of the upstream. */
  readonly decode: (message: Message) => Message;
  readonly retries: Retries;
  readonly requestFields: ForwardedFields;
  readonly responseFields: ForwardedFields;
  /** Timeout in milliseconds of unary calls whose caller sets no deadline; 0 for none, `undefined` for the default. */
  readonly timeoutMs: number | undefined;
  /** Maximum timeout in milliseconds, and the default timeout of unary calls; `undefined` for no maximum. */
  readonly timeoutMaxMs: number | undefined;
  /** Called for each call. */
  readonly observe: UpstreamCallObserver | undefined;
}

/**
 * Whether a protocol encodes the fields of messages itself. Other protocols use the codec, which returns forwarded
 * bytes unchanged.
 */
const writesFields: Readonly<Record<ProtocolName, boolean>> = {
  connect: false,
  grpc: false,
  "grpc-web": false,
  mcp: false,
  rest: true,
};

/** Forwards a unary call, and passes the response to `reply`. Throws if the call cannot be sent. */
export function forwardUnary(target: ForwardTarget, message: Message, context: HandlerContext, reply: Reply): void {
  // The server is shutting down, or the call was aborted.
  const { abortReason } = requestOf(context);
  if (abortReason !== undefined) throw abortReason;
  if (message instanceof LargeMessage) {
    return reply.stream?.(requireSingle(forwardStream(target, message.parts, context), wrongResponses));
  }
  const request = target.method.envelop(message);
  // Messages to upstreams are never compressed, so `envelop` is synchronous.
  if (request instanceof Promise) throw new TypeError("a request to an upstream must not be compressed");
  new ForwardedUnary(target, context, request, reply).start();
}

/** Forwards a unary call, and returns the message of the response. Used if there are interceptors. */
export function promiseUnary(target: ForwardTarget, message: Message, context: HandlerContext): Promise<Message> {
  return new Promise((resolve, reject) => {
    forwardUnary(target, message, context, { resolve: (response) => resolve(response.message), reject });
  });
}

/** Forwards a streaming call, and returns the messages of the response as they arrive. */
export function forwardStream(
  target: ForwardTarget,
  messages: AsyncIterable<Message>,
  context: HandlerContext,
): AsyncIterable<Message> {
  const metadata = new ResponseMetadata(context, target.responseFields);
  const init = initOf(target, context);
  const response = new Promise<StreamCallResponse>((resolve, reject) => {
    new ForwardedStream(init, messages, metadata, resolve, reject).start();
  });
  // The call may fail before anything awaits this promise.
  response.catch(() => undefined);
  const iterator = new ForwardedMessages(
    response,
    writesFields[requestOf(context).protocol] ? target.decode : undefined,
  );
  return { [Symbol.asyncIterator]: () => iterator };
}

/**
 * Returns the only message of a response, once its status is success.
 *
 * @throws ConnectError `Internal` if there is not exactly one message
 */
export async function readSingleResponse(messages: AsyncIterable<Message>): Promise<Message> {
  let response: Message | undefined;
  for await (const message of messages) {
    if (response !== undefined) throw wrongResponses("several");
    response = message;
  }
  if (response === undefined) throw wrongResponses("none");
  return response;
}

function wrongResponses(count: "none" | "several"): ConnectError {
  return count === "none"
    ? problem("ERR_UPSTREAM_RESPONSE", "the response of the service has no message")
    : problem("ERR_UPSTREAM_RESPONSE", "the response of the service has more than one message");
}

function initOf(target: ForwardTarget, context: HandlerContext): CallInit {
  const { upstream, method, retries, observe } = target;
  const timeoutMs = timeoutOf(target, context, method.desc);
  const onEnd = observe?.({ upstream, method: method.desc, contextValues: requestOf(context).contextValues });
  try {
    const fields = forwardHeader(context, target.requestFields);
    // The handler of a streaming client returns a complete message.
    const readsParts = method.desc.methodKind !== "client_streaming" && writesParts(context);
    return { upstream, method, fields, signal: cancelSignalOf(context), timeoutMs, retries, readsParts, onEnd };
  } catch (error) {
    onEnd?.({ error: ConnectError.from(error), durationMs: 0, queuedMs: 0, retries: 0 });
    throw error;
  }
}

function timeoutOf(
  { timeoutMs, timeoutMaxMs }: ForwardTarget,
  context: HandlerContext,
  { methodKind }: DescMethod,
): number | undefined {
  const isRest = requestOf(context).protocol === "rest";
  const defaultMs = timeoutMs ?? timeoutMaxMs ?? (isRest ? defaultRestTimeoutMs : 0);
  const requestedMs = context.timeoutMs() ?? (methodKind === "unary" ? defaultMs || timeoutMaxMs : undefined);
  if (requestedMs === undefined) return undefined;
  // At least 1 ms: a deadline that has just passed is reported by the call itself.
  return Math.max(1, Math.min(requestedMs, timeoutMaxMs ?? requestedMs));
}

class ForwardedUnary extends UnaryCall {
  /**
   * Gives the application's AsyncLocalStorage the context of this call instead of the call that opened the connection.
   */
  readonly #async = new AsyncResource("ForwardedUnary");
  readonly #context: HandlerContext;
  readonly #reply: Reply;
  readonly #metadata: ResponseMetadata;
  readonly #decode: ((message: Message) => Message) | undefined;

  constructor(target: ForwardTarget, context: HandlerContext, request: Uint8Array, reply: Reply) {
    // Created before the call, so that an error of the application's `set` is not reported as one of the upstream.
    const metadata = new ResponseMetadata(context, target.responseFields);
    super(initOf(target, context), request);
    this.#context = context;
    this.#reply = reply;
    this.#metadata = metadata;
    this.#decode = writesFields[requestOf(context).protocol] ? target.decode : undefined;
  }

  protected override headReceived(head: HeaderFields): void {
    this.#metadata.header(head);
  }

  protected override completed(trailer: HeaderFields): ConnectError | undefined {
    this.#metadata.trailer(trailer);
    return super.completed(trailer);
  }

  protected override succeeded(message: Message): void {
    let decoded: Message;
    try {
      decoded = this.#decode === undefined ? message : this.#decode(message);
    } catch (error) {
      return this.#fail(error);
    }
    const { responseHeader: header, responseTrailer: trailer } = this.#context;
    this.#async.runInAsyncScope(() => this.#reply.resolve({ message: decoded, header, trailer }));
  }

  protected override receivedLarge(parts: AsyncIterable<Message>): void {
    const response = Promise.resolve({ message: parts });
    const messages = { [Symbol.asyncIterator]: () => new ForwardedMessages(response, undefined) };
    this.#async.runInAsyncScope(() => this.#reply.stream?.(requireSingle(messages, wrongResponses)));
  }

  protected override malformed(error: ConnectError): void {
    this.#fail(malformedResponse(error));
  }

  protected override failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    if (trailer !== undefined) this.#metadata.trailer(trailer);
    const reported = trailer === undefined ? transportError(error) : error;
    if (!this.failParts(reported, trailer !== undefined)) this.#fail(reported);
  }

  #fail(error: unknown): void {
    this.#async.runInAsyncScope(() => this.#reply.reject(error));
  }
}

class ForwardedStream extends StreamCall {
  readonly #metadata: ResponseMetadata;

  constructor(
    init: CallInit,
    messages: AsyncIterable<Message>,
    metadata: ResponseMetadata,
    resolve: (response: StreamCallResponse) => void,
    reject: (error: ConnectError) => void,
  ) {
    super(init, messages, resolve, reject);
    this.#metadata = metadata;
  }

  protected override headReceived(head: HeaderFields): void {
    this.#metadata.header(head);
    super.headReceived(head);
  }

  protected override completed(trailer: HeaderFields): ConnectError | undefined {
    this.#metadata.trailer(trailer);
    return super.completed(trailer);
  }

  protected override failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    if (trailer !== undefined) this.#metadata.trailer(trailer);
    super.failed(trailer === undefined ? transportError(error) : error, trailer);
  }
}

// equivalent mutant: the result of `return()` is not used.
const doneResult: IteratorResult<Message> = { done: true, value: undefined };

/** The messages of a response, pulled one by one, so that a slow caller applies backpressure to the upstream. */
class ForwardedMessages implements AsyncIterator<Message> {
  readonly #response: Promise<Pick<StreamCallResponse, "message">>;
  readonly #decode: ((message: Message) => Message) | undefined;
  #messages: AsyncIterator<Message> | undefined;

  constructor(
    response: Promise<Pick<StreamCallResponse, "message">>,
    decode: ((message: Message) => Message) | undefined,
  ) {
    this.#response = response;
    this.#decode = decode;
  }

  async next(): Promise<IteratorResult<Message>> {
    this.#messages ??= (await this.#response).message[Symbol.asyncIterator]();
    let result: IteratorResult<Message>;
    try {
      result = await this.#messages.next();
    } catch (error) {
      const connectError = ConnectError.from(error);
      throw isUpstreamStatus(connectError) ? connectError : malformedResponse(connectError);
    }
    if (result.done === true || this.#decode === undefined) return result;
    return { done: false, value: this.#decode(result.value) };
  }

  return(): Promise<IteratorResult<Message>> {
    // Before the header has arrived, the call is aborted by its signal.
    return this.#messages?.return?.() ?? Promise.resolve(doneResult);
  }
}

/** Returns whether an error is a status of the upstream, or already has an identifier. */
function isUpstreamStatus(error: ConnectError): boolean {
  return error.code === Code.Canceled || errorCodeOf(error) !== undefined || error.metadata.has("grpc-status");
}
