import { create, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { setByFetch } from "@plantstore/gateway/exchange";
import { memoize } from "@plantstore/gateway/internal/messages/json";
import { oneMessage, formatGrpcTimeout } from "@plantstore/gateway/internal/protocols";
import { isHttpBodyType } from "@plantstore/gateway/rest";
import { readBody } from "./answer-body.ts";
import type { ErrorStyle } from "./answer-error.ts";
import { type AnswerReader, createAnswerReader } from "./answer-reader.ts";
import { readAnswerStream } from "./answer-stream.ts";
import { pageLocation } from "./page.ts";
import { onlyMessage, openInput, openStreamBody } from "./request-stream.ts";
import type { MessageStyle, RestMethod, RestRequest } from "./rest-method.ts";
import type { RestRule } from "./rest-rule.ts";
import { type FetchRequest, sendRequest } from "./send-request.ts";

/** What all calls of a transport have in common. */
export interface CallSettings {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly fetch: typeof fetch;
  readonly messages: MessageStyle;
  readonly errors: ErrorStyle;
  readonly readMaxBytes: number;
}

/** One call, besides its messages. */
export interface RestCall {
  readonly method: RestMethod;
  readonly header: Headers;
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
}

/** Makes calls: a request of messages, and messages of its answer. */
export class RestCalls {
  readonly settings: CallSettings;
  readonly #readerOf: (rule: RestRule) => AnswerReader;
  readonly #sendsDeadline: boolean;

  constructor(settings: CallSettings) {
    this.settings = settings;
    this.#readerOf = memoize((rule) => createAnswerReader(rule, settings.messages.read));
    this.#sendsDeadline = !isOfOtherOrigin(settings.baseUrl);
  }

  /** Makes a unary call. Rejects with a ConnectError, which says so if the signal ended the call. */
  async unary(call: RestCall, message: Message): Promise<UnaryAnswer> {
    try {
      return await this.#unary(call, message);
    } catch (error) {
      throw endOf(call.signal, error);
    }
  }

  /** Makes a call with a stream of messages on either side. Rejects as {@link unary} does, and so do the messages. */
  async stream(call: RestCall, input: AsyncIterable<Message>): Promise<StreamAnswer> {
    try {
      const { header, messages } = await this.#stream(call, input);
      return { header, messages: untilAborted(call.signal, messages) };
    } catch (error) {
      throw endOf(call.signal, error);
    }
  }

  async #unary(call: RestCall, message: Message): Promise<UnaryAnswer> {
    const request = call.method.write(message);
    const { rule, body } = request;
    const reader = this.#readerOf(rule);
    const accept = reader.readRaw === undefined ? "application/json" : "*/*";
    const header = this.#headerOf(call, accept, body?.contentType);
    const response = await this.#send(call, request, header, body?.bytes);
    return { header: response.headers, message: await this.#readWhole(reader, response) };
  }

  async #stream(call: RestCall, input: AsyncIterable<Message>): Promise<StreamAnswer> {
    const { methodKind } = call.method.desc;
    const response =
      methodKind === "server_streaming" ? await this.#askForStream(call, input) : await this.#sendStream(call, input);
    const { rule, answer, failure } = response;
    const reader = this.#readerOf(rule);
    if (methodKind === "client_streaming") {
      return { header: answer.headers, messages: oneMessage(await this.#readWhole(reader, answer)) };
    }
    const { errors, readMaxBytes } = this.settings;
    const messages = readAnswerStream(answer, { rule, reader, errors, messageBytesMax: readMaxBytes });
    return { header: answer.headers, messages: failure === undefined ? messages : orFailure(messages, failure) };
  }

  async #askForStream(call: RestCall, input: AsyncIterable<Message>): Promise<Answered> {
    const request = call.method.write(await onlyMessage(input));
    const { rule, body } = request;
    const header = this.#headerOf(call, this.#acceptOf(rule), body?.contentType);
    return { rule, answer: await this.#send(call, request, header, body?.bytes) };
  }

  async #sendStream(call: RestCall, input: AsyncIterable<Message>): Promise<Answered> {
    const { method } = call;
    const opened = await openInput(input);
    const request = opened.first === undefined ? emptyStream(method) : method.write(opened.first);
    const { rule } = request;
    const first = opened.first === undefined ? undefined : (request.body ?? method.writeFirst(rule, opened.first));
    const { contentType, body, failure } = await openStreamBody(method, rule, first, opened);
    try {
      const header = this.#headerOf(call, this.#acceptOf(rule), contentType);
      return { rule, answer: await this.#send(call, request, header, body), failure };
    } catch (error) {
      throw failure() ?? error;
    }
  }

  #acceptOf({ method }: RestRule): string {
    if (method.methodKind === "client_streaming") return "application/json";
    // The only form whose messages can be told apart by their lines, and that has no end of its own to wait for.
    return isHttpBodyType(method.output)
      ? "*/*"
      : "application/x-ndjson, application/json;q=0.9, text/event-stream;q=0.8";
  }

  #send(call: RestCall, { rule, target }: RestRequest, header: Headers, body: FetchRequest["body"]): Promise<Response> {
    const url = this.settings.baseUrl + target;
    // Nothing that a URL parser changes may be sent: it would be another resource.
    // No test can tell: whatever it would change was refused or escaped before.
    if (new URL(url).href !== url) throw new ConnectError(`${url} is not a normalized URL`, Code.InvalidArgument);
    const { httpMethod } = rule;
    return sendRequest(
      this.settings.fetch,
      { url, httpMethod, header, body, signal: call.signal },
      this.settings.errors,
    );
  }

  #headerOf({ header, timeoutMs }: RestCall, accept: string, contentType: string | undefined): Headers {
    for (const name of setByFetch) header.delete(name);
    if (!header.has("accept")) header.set("accept", accept);
    if (contentType === undefined) header.delete("content-type");
    else header.set("content-type", contentType);
    if (timeoutMs !== undefined && this.#sendsDeadline) header.set("grpc-timeout", formatGrpcTimeout(timeoutMs));
    return header;
  }

  async #readWhole(reader: AnswerReader, response: Response): Promise<Message> {
    return reader.readWhole(await readBody(response, this.settings.readMaxBytes), response);
  }
}

/** The answer of a unary call. */
interface UnaryAnswer {
  readonly header: Headers;
  readonly message: Message;
}

/** The answer of a call with a stream of messages on either side. */
interface StreamAnswer {
  readonly header: Headers;
  readonly messages: AsyncIterable<Message>;
}

async function* untilAborted(signal: AbortSignal, messages: AsyncIterable<Message>): AsyncGenerator<Message, void> {
  try {
    yield* messages;
  } catch (error) {
    throw endOf(signal, error);
  }
}

/** Returns why a call ended: what fails after its signal was aborted fails because of that. */
function endOf(signal: AbortSignal, error: unknown): unknown {
  // Not every version of Connect that is supported asks by itself.
  return signal.aborted ? ConnectError.from(signal.reason, Code.Canceled) : error;
}

/** An answer, and the rule by which it was asked for. */
interface Answered {
  readonly rule: RestRule;
  readonly answer: Response;
  /** Why the request broke off, which the answer's end does not tell; `undefined` if it was sent as a whole. */
  readonly failure?: () => unknown;
}

/** Returns the request of a stream without messages, whose path no message can name. */
function emptyStream(method: RestMethod): RestRequest {
  const { rule } = method;
  const [variable] = rule?.variables ?? [];
  if (rule === undefined || variable !== undefined) {
    throw new ConnectError(`a stream without messages cannot set ${variable?.name ?? "the path"}`, Code.InvalidArgument);
  }
  return method.write(create(method.desc.input));
}

/**
 * Whether the page is of another origin than the API, which then has to allow each field of a header. Few allow those of
 * a deadline, which the page keeps by itself: it ends the call, and the server sees that.
 */
function isOfOtherOrigin(baseUrl: string): boolean {
  const { origin } = pageLocation();
  return origin !== undefined && origin !== new URL(baseUrl).origin;
}

/** Yields the messages of an answer. If they break off because the request did, that is the error. */
async function* orFailure(messages: AsyncIterable<Message>, failure: () => unknown): AsyncGenerator<Message, void> {
  try {
    yield* messages;
  } catch (error) {
    throw failure() ?? error;
  }
}
