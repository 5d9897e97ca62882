import { create, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { fieldsSetByFetch } from "@protoport/gateway/exchange";
import { formatGrpcTimeout, memoize, oneMessage } from "@protoport/gateway/messages";
import { isHttpBodyType } from "@protoport/gateway/rest";
import { onlyInput, openInput, openStreamBody } from "./request-stream.ts";
import { readResponseBody, readRecordJson } from "./response-body.ts";
import { type ErrorStyle, readResponseError } from "./response-error.ts";
import { createResponseReader, type ResponseReader } from "./response-reader.ts";
import { readResponseStream } from "./response-stream.ts";
import type { MessageStyle, RestMethod, RestClientRequest } from "./rest-method.ts";
import type { RestClientRule } from "./rest-rule.ts";

/** The settings that all calls on a transport share. */
interface RestCallSettings {
  /** The base URL without a trailing slash. */
  readonly baseUrl: string;
  readonly fetch: typeof fetch;
  readonly messages: MessageStyle;
  readonly errors: ErrorStyle;
  readonly readMaxBytes: number;
}

/** The parameters of a call, without messages. */
interface RestCall {
  readonly method: RestMethod;
  readonly header: Headers;
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
}

/** Makes unary and streaming calls: sends requests, and reads response messages. */
export class RestCalls {
  readonly settings: RestCallSettings;
  readonly #readerOf: (rule: RestClientRule) => ResponseReader;
  readonly #sendsDeadline: boolean;

  constructor(settings: RestCallSettings) {
    this.settings = settings;
    this.#readerOf = memoize((rule) => createResponseReader(rule, settings.messages.read));
    this.#sendsDeadline = !isOfOtherOrigin(settings.baseUrl);
  }

  /**
   * Makes a unary call. Rejects with a ConnectError. If the signal is aborted, the error is created from the abort
   * reason, by default with the code `Canceled`.
   */
  async unary(call: RestCall, message: Message): Promise<UnaryResult> {
    try {
      return await this.#unary(call, message);
    } catch (error) {
      throw reasonOf(call.signal, error);
    }
  }

  /** Makes a streaming call. The promise and the message iteration reject with the same errors as {@link unary}. */
  async stream(call: RestCall, input: AsyncIterable<Message>): Promise<StreamResult> {
    try {
      const { header, messages } = await this.#stream(call, input);
      return { header, messages: withAbortReason(call.signal, messages) };
    } catch (error) {
      throw reasonOf(call.signal, error);
    }
  }

  async #unary(call: RestCall, message: Message): Promise<UnaryResult> {
    const request = call.method.write(message);
    const { rule, body } = request;
    const reader = this.#readerOf(rule);
    const accept = reader.readRaw === undefined ? "application/json" : "*/*";
    const header = this.#headerOf(call, accept, body?.contentType);
    const response = await this.#send(call, request, header, body?.bytes);
    return { header: response.headers, message: await this.#readBody(reader, response) };
  }

  async #stream(call: RestCall, input: AsyncIterable<Message>): Promise<StreamResult> {
    const { methodKind } = call.method.desc;
    const sent =
      methodKind === "server_streaming" ? await this.#requestStream(call, input) : await this.#sendStream(call, input);
    const { rule, response, failure } = sent;
    const reader = this.#readerOf(rule);
    if (methodKind === "client_streaming") {
      return { header: response.headers, messages: oneMessage(await this.#readBody(reader, response)) };
    }
    const { errors, readMaxBytes } = this.settings;
    const messages = readResponseStream(response, { rule, reader, errors, maxMessageBytes: readMaxBytes });
    return {
      header: response.headers,
      messages: failure === undefined ? messages : withFailureReason(messages, failure),
    };
  }

  async #requestStream(call: RestCall, input: AsyncIterable<Message>): Promise<SentRequest> {
    const request = call.method.write(await onlyInput(input));
    const { rule, body } = request;
    const header = this.#headerOf(call, this.#acceptOf(rule), body?.contentType);
    return { rule, response: await this.#send(call, request, header, body?.bytes) };
  }

  async #sendStream(call: RestCall, input: AsyncIterable<Message>): Promise<SentRequest> {
    const { method } = call;
    const opened = await openInput(input);
    const request = opened.first === undefined ? requestWithoutMessages(method) : method.write(opened.first);
    const { rule } = request;
    const first =
      opened.first === undefined ? undefined : (request.body ?? method.writeFirstMessage(rule, opened.first));
    const { contentType, body, failure } = await openStreamBody(method, rule, first, opened);
    try {
      const header = this.#headerOf(call, this.#acceptOf(rule), contentType);
      return { rule, response: await this.#send(call, request, header, body), failure };
    } catch (error) {
      throw failure() ?? error;
    }
  }

  #acceptOf({ method }: RestClientRule): string {
    if (method.methodKind === "client_streaming") return "application/json";
    // Prefers JSON lines, because a message is complete when its line ends. JSON lines have no closing bracket.
    return isHttpBodyType(method.output)
      ? "*/*"
      : "application/x-ndjson, application/json;q=0.9, text/event-stream;q=0.8";
  }

  #send(
    call: RestCall,
    { rule, target }: RestClientRequest,
    header: Headers,
    body: FetchRequest["body"],
  ): Promise<Response> {
    const url = this.settings.baseUrl + target;
    // Refuses a URL that the URL parser changes, because the changed URL may refer to another resource.
    // equivalent mutant: everything that the parser would change was refused or escaped before.
    if (new URL(url).href !== url) throw new ConnectError(`${url} is not a normalized URL`, Code.InvalidArgument);
    const { httpMethod } = rule;
    return sendRestRequest(
      this.settings.fetch,
      { url, httpMethod, header, body, signal: call.signal },
      this.settings.errors,
    );
  }

  #headerOf({ header, timeoutMs }: RestCall, accept: string, contentType: string | undefined): Headers {
    for (const name of fieldsSetByFetch) header.delete(name);
    if (!header.has("accept")) header.set("accept", accept);
    if (contentType === undefined) header.delete("content-type");
    else header.set("content-type", contentType);
    if (timeoutMs !== undefined && this.#sendsDeadline) header.set("grpc-timeout", formatGrpcTimeout(timeoutMs));
    return header;
  }

  async #readBody(reader: ResponseReader, response: Response): Promise<Message> {
    return reader.readBody(await readResponseBody(response, this.settings.readMaxBytes), response);
  }
}

/** The result of a unary call. */
interface UnaryResult {
  readonly header: Headers;
  readonly message: Message;
}

/** The result of a streaming call. */
interface StreamResult {
  readonly header: Headers;
  readonly messages: AsyncIterable<Message>;
}

async function* withAbortReason(signal: AbortSignal, messages: AsyncIterable<Message>): AsyncGenerator<Message, void> {
  try {
    yield* messages;
  } catch (error) {
    throw reasonOf(signal, error);
  }
}

/** Returns why a call failed: the reason of an aborted signal, otherwise the error. */
function reasonOf(signal: AbortSignal, error: unknown): unknown {
  // Checks the signal, because not every supported Connect version does.
  return signal.aborted ? ConnectError.from(signal.reason, Code.Canceled) : error;
}

/** The rule for a sent request, and the response. */
interface SentRequest {
  readonly rule: RestClientRule;
  readonly response: Response;
  /** Returns the reason for an aborted request body, if any. Errors of the response do not contain this reason. */
  readonly failure?: () => unknown;
}

// Throws if the path has variables, because only a message can set variables.
function requestWithoutMessages(method: RestMethod): RestClientRequest {
  const { rule } = method;
  const [variable] = rule?.variables ?? [];
  if (rule === undefined || variable !== undefined) {
    throw new ConnectError(
      `the path needs ${variable?.name ?? "a rule"}, but the stream has no message`,
      Code.InvalidArgument,
    );
  }
  return method.write(create(method.desc.input));
}

// The timeout field is not sent to another origin, because few APIs allow the field (CORS). The page itself cancels the
// call after the timeout.
function isOfOtherOrigin(baseUrl: string): boolean {
  const { origin } = pageLocation();
  return origin !== undefined && origin !== new URL(baseUrl).origin;
}

/** Yields the messages in a response. If the request body was aborted, the reason for the abort is thrown. */
async function* withFailureReason(
  messages: AsyncIterable<Message>,
  failure: () => unknown,
): AsyncGenerator<Message, void> {
  try {
    yield* messages;
  } catch (error) {
    throw failure() ?? error;
  }
}

/** A request for fetch. */
interface FetchRequest {
  readonly url: string;
  readonly httpMethod: string;
  readonly header: Headers;
  readonly body: Uint8Array | ReadableStream<Uint8Array> | undefined;
  readonly signal: AbortSignal;
}

/**
 * Sends a request, and returns a successful response.
 *
 * @throws ConnectError from the response, `Unavailable` without a response, or `Unknown` for a redirect. Redirects are
 * not followed, because they lead to another resource, and possibly to another server
 */
async function sendRestRequest(
  fetchFunction: typeof fetch,
  { url, httpMethod, header, body, signal }: FetchRequest,
  errors: ErrorStyle,
): Promise<Response> {
  const init = { method: httpMethod, headers: header, signal, redirect: "manual" } as const;
  const streamed = { ...init, duplex: "half" } as const;
  const fetchInit =
    body instanceof ReadableStream ? { ...streamed, body } : { ...init, body: body && new Uint8Array(body) };
  const request = body === undefined ? init : fetchInit;
  let response: Response;
  try {
    response = await fetchFunction(url, request);
  } catch (error) {
    const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    throw new ConnectError(
      `cannot get a response from the server: ${reason}`,
      Code.Unavailable,
      undefined,
      undefined,
      error,
    );
  }
  if (response.ok) return response;
  const { status, type, headers } = response;
  // In a browser, a redirect has the type "opaqueredirect" and no visible status.
  if (type === "opaqueredirect" || (status >= 300 && status < 400)) {
    const location = headers.get("location");
    throw new ConnectError(
      `the server redirected${location === null ? "" : ` to ${location}`}; redirects are not followed`,
      Code.Unknown,
    );
  }
  throw readResponseError(await readRecordJson(response), status, headers, errors);
}

/** Returns the location of the web page or worker. Outside browsers, returns an empty object. */
export function pageLocation(): { readonly href?: string; readonly origin?: string } {
  return Object(Reflect.get(globalThis, "location"));
}
