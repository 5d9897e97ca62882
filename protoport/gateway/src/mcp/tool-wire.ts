import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import {
  clientGoneProblem,
  concatBytes,
  type Exchange,
  type HeaderFields,
  noBytes,
  startInterval,
  toUtf8,
} from "../http/index.ts";
import { FieldProblem, hasObjectForm, JsonScanner, problem } from "../protobuf/index.ts";
import {
  BodyCallWire,
  codeNames,
  httpStatusOf,
  LazyHeaders,
  metadataFields,
  oneMessage,
  type RequestMessages,
  serverSentEvents,
  type StreamTraits,
  type StreamWire,
  toRestHeader,
} from "../protocols/index.ts";
import { isId, isProtocolError, jsonFields, type McpMessage, respondWithError } from "./json-rpc.ts";
import { requireParamHeaders } from "./param-headers.ts";
import type { McpServer } from "./server.ts";
import type { Tool } from "./tools.ts";

/** A tool call. */
export interface ToolCall {
  readonly server: McpServer;
  readonly tool: Tool;
  /** JSON text. */
  readonly id: string;
  readonly message: McpMessage;
  readonly stateless: boolean;
}

/**
 * Reads a tool call, and writes its result. The response to a unary call is JSON, unless the call takes long and the
 * client has asked for progress notifications. The response to a server stream is Server-Sent Events, unless the call
 * fails before its first message. If the client has asked for progress, each message is a progress notification. The
 * last event is one result with all messages.
 */
export class ToolWire extends BodyCallWire implements StreamWire {
  readonly traits: StreamTraits = { heartbeat, reportsErrorAtEnd: true, sendsHeaderEarly: true };
  earlyEnd: ConnectError | undefined;
  readonly #call: ToolCall;
  readonly #messages: string[] = [];
  #bytes = 0;
  #progress: UnaryProgress | undefined;
  #removeFromRunning: (() => void) | undefined;

  constructor(exchange: Exchange, call: ToolCall) {
    const { rpc } = call.tool;
    const { timeoutMs } = call.server.options.stream;
    super(exchange, rpc, fieldsOfCall(exchange, call.message), rpc.kind === "stream" ? timeoutMs : undefined);
    this.#call = call;
  }

  read(): Message {
    const { server, tool, id, message, stateless } = this.#call;
    const { input } = tool.rpc.method;
    const token = this.#progressToken;
    if (tool.rpc.kind === "unary" && token !== undefined)
      this.#progress = new UnaryProgress(this.exchange, token, () => this.headerToSend(this.responseHeader));
    if (!stateless) this.#removeFromRunning = server.runningCalls.add(this.exchange, id, () => this.#cancel());
    const decoded = this.decode(hasObjectForm(input) ? message.arguments : this.#valueOf(message.arguments));
    if (stateless) requireParamHeaders(this.exchange, decoded, input, server.paramHeaders.get(input));
    return decoded;
  }

  /** Ends a call that its client has cancelled, without a JSON-RPC response (MCP 2025-11-25, "Cancellation"). */
  #cancel(): void {
    this.#finish();
    if (this.exchange.httpStatus === 0) this.exchange.respond(200, eventFields, noBytes);
    else this.exchange.end();
    this.exchange.abortReceiver?.clientAborted(clientGoneProblem());
  }

  /** Ends what runs with the call. Returns whether progress notifications have begun the response. */
  #finish(): boolean {
    this.#removeFromRunning?.();
    return this.#progress?.stop() === true;
  }

  /** Returns the argument `value`, which contains an input message whose JSON is not an object. */
  #valueOf(args: string): string {
    const scanner = new JsonScanner(args);
    let value: string | undefined;
    let hasOthers = false;
    const readMember = (name: string): void => {
      scanner.peek();
      const start = scanner.at;
      scanner.skipValue();
      if (name === "value") value = args.slice(start, scanner.at);
      else hasOthers = true;
    };
    try {
      scanner.readObject(readMember);
    } catch (error) {
      // Unlike `readEnvelope`, the scanner refuses a key that is set more than once.
      throw error instanceof FieldProblem ? problem("ERR_MESSAGE_INVALID", error.message) : error;
    }
    if (value === undefined) throw problem("ERR_MESSAGE_INVALID", 'the argument "value" is missing');
    if (!hasOthers || this.codec.refusesUnknownFields !== true) return value;
    throw problem("ERR_MESSAGE_INVALID", 'there must be no argument other than "value"');
  }

  readAll(): RequestMessages {
    // Only server streams are tools.
    return oneMessage(this.read());
  }

  /** The progress token's JSON text, or `undefined` if the client asks for no notifications. */
  get #progressToken(): string | undefined {
    const token = this.#call.message.meta.get("progressToken");
    return token === undefined || !isId(token) ? undefined : token;
  }

  write(message: Message, header: Headers): void {
    const result = this.#result(this.#structure(message));
    if (this.#finish()) return this.#endWith(event(result));
    this.exchange.respond(200, withFieldsOf(header, jsonFields), toUtf8(result));
  }

  writeError(error: ConnectError): void {
    if (this.#finish()) return this.#endWith(event(this.#result(undefined, error)));
    const httpStatus = isProtocolError(error) ? httpStatusOf(error) : challengeStatus(error);
    const fields = withFieldsOf(this.responseHeader, []);
    if (httpStatus !== undefined) return respondWithError(this.exchange, error, this.#call.id, fields, httpStatus);
    const result = toUtf8(this.#result(undefined, error));
    this.exchange.respond(200, [...jsonFields, ...fields, ...metadataFields(error)], result);
  }

  /** Called when the client disconnects. */
  release(): void {
    this.#finish();
  }

  encode(message: Message): Uint8Array {
    const text = this.#structure(message);
    const { maxMessages, maxBytes } = this.#call.server.options.stream;
    const bytes = this.#bytes + toUtf8(text).byteLength;
    if (this.#messages.length >= maxMessages) this.earlyEnd = streamLimitError(`${maxMessages} messages`);
    else if (bytes > maxBytes) this.earlyEnd = streamLimitError(`${maxBytes} bytes`);
    if (this.earlyEnd !== undefined) return noBytes;
    this.#bytes = bytes;
    this.#messages.push(text);
    const token = this.#progressToken;
    return token === undefined ? noBytes : progressEvent(token, this.#messages.length, text);
  }

  headerToSend(header: Headers): HeaderFields {
    return withFieldsOf(header, eventFields);
  }

  begin(header: HeaderFields): void {
    this.exchange.begin(200, header);
  }

  send(bytes: Uint8Array): void | Promise<void> {
    return bytes.byteLength === 0 ? undefined : this.exchange.write(bytes);
  }

  end(_trailer: Headers, error: ConnectError | undefined): void {
    this.#endWith(this.#resultEvent(error));
  }

  #endWith(last: Uint8Array): void {
    this.#finish();
    // Backpressure can be ignored at the response's last write.
    void this.send(last);
    this.exchange.end();
  }

  respond(header: HeaderFields, bytes: Uint8Array, _trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined && (challengeStatus(error) !== undefined || this.#messages.length === 0)) {
      return this.writeError(error);
    }
    this.#finish();
    this.exchange.respond(200, header, concatBytes([bytes, this.#resultEvent(error)]));
  }

  #resultEvent(error: ConnectError | undefined): Uint8Array {
    const hasFailed = error !== undefined && this.#messages.length === 0;
    return event(this.#result(hasFailed ? undefined : `{"messages":[${this.#messages.join(",")}]}`, error));
  }

  /** Returns a message as a structured result's JSON text. */
  #structure(message: Message): string {
    const text = resultUtf8.decode(this.codec.encode(message));
    return hasObjectForm(this.#call.tool.rpc.method.output) ? text : `{"value":${text}}`;
  }

  /** Returns a result's text. `structured` is the tool's output as JSON text, or `undefined` without an output. */
  #result(structured: string | undefined, error?: ConnectError): string {
    const { server, tool, id, stateless } = this.#call;
    const texts = error === undefined ? [] : [`${codeNames[error.code]}: ${error.rawMessage}`];
    if (error !== undefined && error.details.length > 0) {
      const failure = { httpStatus: httpStatusOf(error), procedure: tool.rpc.name };
      texts.push(resultUtf8.decode(server.writeErrorRecord(error, failure).body));
    }
    if (structured !== undefined) texts.push(structured);
    const content = texts.map((text) => `{"type":"text","text":${JSON.stringify(text)}}`).join(",");
    const output = structured === undefined ? "" : `,"structuredContent":${structured}`;
    const [before, after] = server.frame(id, stateless);
    return `${before}"content":[${content}]${output}${error === undefined ? "" : ',"isError":true'}${after}`;
  }
}

function streamLimitError(limit: string): ConnectError {
  const message = `the stream was ended after ${limit}; a result cannot contain more`;
  return problem("ERR_PROTOCOL", message, { code: Code.ResourceExhausted });
}

/**
 * Returns the HTTP status for an error that asks the client for another credential (MCP, "Authorization"). A 401
 * needs a challenge (RFC 9110 §15.5.2). Without one, the error may concern this server's credential for another server.
 */
function challengeStatus({ code, metadata }: ConnectError): 401 | 403 | undefined {
  if (!metadata.has("www-authenticate")) return undefined;
  if (code === Code.Unauthenticated) return 401;
  return code === Code.PermissionDenied ? 403 : undefined;
}

/** Returns the protocol's header fields, and the fields that the handler has set. */
function withFieldsOf(header: Headers, own: HeaderFields): HeaderFields {
  return header instanceof LazyHeaders && header.isPristine ? own : [...own, ...toRestHeader(header)];
}

/**
 * Adds the idempotency key from `_meta` to the request header, unless the header has a key. The field value is a String
 * with the same escapes as in JSON (RFC 9651 §3.3.3, draft-ietf-httpapi-idempotency-key-header §2.1).
 */
function fieldsOfCall(exchange: Exchange, { idempotencyKey: key }: McpMessage): HeaderFields {
  if (key === undefined || exchange.get("idempotency-key") !== null) return exchange.fields;
  return [...exchange.fields, "idempotency-key", JSON.stringify(key)];
}

const resultUtf8 = new TextDecoder();

/** Seconds between progress notifications. Some clients restart their timeout at each notification. */
const intervalS = 5;

/** Sends progress notifications while a unary call runs. The first one begins a Server-Sent Events response. */
class UnaryProgress {
  readonly #exchange: Exchange;
  readonly #token: string;
  readonly #headerOf: () => HeaderFields;
  readonly #interval: { stop(): void };
  #seconds = 0;
  #hasBegun = false;

  /** @param token - the progress token's JSON text */
  constructor(exchange: Exchange, token: string, headerOf: () => HeaderFields) {
    this.#exchange = exchange;
    this.#token = token;
    this.#headerOf = headerOf;
    this.#interval = startInterval(intervalS * 1000, () => this.#notify());
  }

  /** Stops the notifications. Returns whether the response has begun. */
  stop(): boolean {
    this.#interval.stop();
    return this.#hasBegun;
  }

  #notify(): void {
    this.#seconds += intervalS;
    try {
      if (!this.#hasBegun) this.#exchange.begin(200, this.#headerOf());
    } catch {
      // `admit` or the handler has set an invalid response field. The response to the call reports this error.
      return this.#interval.stop();
    }
    this.#hasBegun = true;
    const text = `running for ${this.#seconds} seconds`;
    // Backpressure is ignored, because a client that does not read costs only a hundred bytes per notification.
    void this.#exchange.write(progressEvent(this.#token, this.#seconds, text));
  }
}

/** Maximum characters in a progress notification's message. People read such messages while they wait. */
const maxProgress = 1_000;

const events = serverSentEvents(false);

const eventFields: HeaderFields = ["content-type", events.contentType, ...events.fields];

/** The bytes that keep an idle response open. */
const heartbeat: Uint8Array | undefined = events.heartbeat;

/** Returns an event without `retry`, because clients cannot resume a call. */
function event(json: string): Uint8Array {
  return toUtf8(events.message(json, 1));
}

/** Returns a progress notification. @param token - the token's JSON text as the client has sent it */
function progressEvent(token: string, progress: number, text: string): Uint8Array {
  const message = text.length > maxProgress ? `${text.slice(0, maxProgress).toWellFormed()}…` : text;
  const params = `{"progressToken":${token},"progress":${progress},"message":${JSON.stringify(message)}}`;
  return event(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`);
}
