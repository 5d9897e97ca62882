import { AsyncResource } from "node:async_hooks";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import {
  BaseExchange,
  type BodyPlan,
  type BodyReceiver,
  type BodySource,
  checkRequestHead,
  type CommonHeaderFields,
  type ExchangeHead,
  fieldsNotCopiedFromFramework,
  type HttpProblem,
  type Limits,
  type Peer,
  readHeaderField,
  RequestBody,
  transferEncodingProblem,
} from "../exchange/index.ts";

/**
 * An exchange with node streams for request and response. All exchanges share their event listeners, which find the
 * exchange by a symbol property on the stream. Closures would keep each call in memory as long as node keeps the
 * stream, which doubles garbage collection time.
 */
export abstract class NodeExchange extends BaseExchange implements BodySource {
  readonly body: RequestBody | undefined;
  readonly #request: WithExchange<Readable>;
  readonly #response: WithExchange<ResponseStream>;
  #isReading = false;

  /** `bodyBytes` is `undefined` without a body, or 0 if unknown. */
  constructor(request: Readable, response: ResponseStream, head: ExchangeHead, bodyBytes: number | undefined) {
    super(head);
    this.body = bodyBytes === undefined ? undefined : new AwaitedBody(this, bodyBytes);
    this.#request = request;
    this.#response = response;
    this.#request[exchangeKey] = this;
    this.#response[exchangeKey] = this;
    response.on("close", onClose);
  }

  get isMounted(): boolean {
    return true;
  }

  /** Returns whether a piece is known to be the whole body before node's stream reports the end. */
  isWholeBody(_piece: Uint8Array): boolean {
    return false;
  }

  /** Returns why the response stream has closed before the response was complete. */
  protected abstract closeProblem(): HttpProblem;

  /** Also false if the stream is closed but has not emitted "close" yet, or if the program has responded. */
  protected override get isOpen(): boolean {
    const { destroyed, headersSent } = this.#response;
    return super.isOpen && !destroyed && (this.httpStatus !== 0 || !headersSent);
  }

  startBody(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    // Resumes the stream, because adding a listener does not resume a stream that the program has paused.
    this.#request.on("data", onData).on("end", onEnd).resume();
  }

  consumed(_bytes: number): void {
    if (this.body?.isFull !== true && this.#request.isPaused()) this.#request.resume();
  }

  protected sendPiece(piece: Uint8Array): boolean {
    const hasCapacity = this.#response.write(piece);
    if (!hasCapacity) this.#response.once("drain", onDrain);
    return !hasCapacity;
  }

  /** Also drops the rest of the request body, because node does not free a stream that is not read completely. */
  protected override complete(): void {
    super.complete();
    if (this.body === undefined || this.body.ended) return;
    this.startBody();
    this.#request.resume();
  }

  /** Called when the response stream has closed. */
  closed(): void {
    this.#request[exchangeKey] = undefined;
    this.#response[exchangeKey] = undefined;
    if (!this.isComplete) {
      this.abort(this.closeProblem());
      // Drops the data that node has read ahead, which would otherwise stay in memory as long as the stream.
      while (this.#request.read() !== null);
    }
  }
}

/** Returns the remote address and port of a socket. */
export function peerOf(socket: Socket | undefined): Peer {
  return { address: socket?.remoteAddress ?? "", port: socket?.remotePort ?? 0 };
}

const key: unique symbol = Symbol("connection");

/** Returns an opaque key for a socket or a session. */
export function keyOf(connection: object & { [key]?: object }): object {
  return (connection[key] ??= {});
}

/** A response stream that reports whether the header was sent. */
type ResponseStream = Writable & { readonly headersSent: boolean };

const exchangeKey: unique symbol = Symbol("exchange");
type WithExchange<Stream> = Stream & { [exchangeKey]?: NodeExchange | undefined };

function onData(this: WithExchange<Readable>, piece: Uint8Array): void {
  const exchange = this[exchangeKey];
  const body = exchange?.body;
  if (exchange === undefined || body === undefined) return;
  body.onData(piece, exchange.isWholeBody(piece));
  if (body.isFull) this.pause();
}

function onEnd(this: WithExchange<Readable>): void {
  // node also emits "end" for an incomplete body, when a stream is reset or its connection closes.
  if (!this.closed) this[exchangeKey]?.body?.onEnd();
}

function onDrain(this: WithExchange<Writable>): void {
  this[exchangeKey]?.onWritable();
}

function onClose(this: WithExchange<Writable>): void {
  this[exchangeKey]?.closed();
}

/** Checks a node request's head. Returns the target in origin form, or the problem. */
export function checkNodeRequestHead(
  request: IncomingMessage | Http2ServerRequest,
  common: CommonHeaderFields,
  limits: Limits,
): string | HttpProblem {
  const { httpVersion, method = "", url = "" } = request;
  const { transferEncoding, host, listBytes } = common;
  const problem = transferEncoding === null ? undefined : transferEncodingProblem(transferEncoding, httpVersion);
  const authority = ("authority" in request && request.authority) || host;
  return problem ?? checkRequestHead(method, url, authority, httpVersion !== "1.0", listBytes, limits);
}

/** A node response that a framework passes to the gateway. The framework may have set header fields on the response. */
export interface FrameworkResponse {
  getHeaderNames(): string[];
  getHeaders(): OutgoingHttpHeaders;
}

/**
 * Returns the header fields for a mounted gateway's response: those that the framework, such as Express, has set, then
 * the gateway's. A gateway field replaces the framework's field with the same name, except for `vary` and `set-cookie`.
 * Framework fields that describe a body are left out, because the body comes from the gateway.
 */
export function withFrameworkFields(response: FrameworkResponse, own: string[]): string[] {
  if (response.getHeaderNames().length === 0) return own;
  const fields: string[] = [];
  for (const [name, value] of Object.entries(response.getHeaders())) {
    const isReplaced = !combinedFields.has(name) && readHeaderField(own, name) !== null;
    if (value === undefined || isReplaced || fieldsNotCopiedFromFramework.has(name)) continue;
    for (const line of [value].flat()) fields.push(name, String(line));
  }
  return [...fields, ...own];
}

const combinedFields: ReadonlySet<string> = new Set(["set-cookie", "vary"]);

/** A request body that calls the receiver in the async context of the read instead of the socket's context. */
export class AwaitedBody extends RequestBody {
  override read(plan: BodyPlan, receiver: BodyReceiver): void {
    super.read(plan, this.ended ? receiver : new ReceiverInContext(receiver));
  }
}

class ReceiverInContext extends AsyncResource implements BodyReceiver {
  readonly #receiver: BodyReceiver;
  /** Undefined if the receiver has no `receivedStart`, so that the body does not call this method for each piece. */
  readonly receivedStart?: NonNullable<BodyReceiver["receivedStart"]>;

  constructor(receiver: BodyReceiver) {
    super("AwaitedBody");
    this.#receiver = receiver;
    if (receiver.receivedStart === undefined) return;
    this.receivedStart = (start, rest) => this.runInAsyncScope(() => receiver.receivedStart?.(start, rest) === true);
  }

  received(body: Uint8Array | undefined): void {
    this.runInAsyncScope(() => this.#receiver.received(body));
  }

  dropped(problem: HttpProblem | undefined): void {
    this.#receiver.dropped?.(problem);
  }
}
