import type { Http2Session, IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { ErrorCode } from "../http2/index.ts";
import type { Peer } from "./admit.ts";
import { type AbortListener, type BodyReceiver, type Exchange, unreadBodyBytesMax } from "./exchange.ts";
import { goneAway, resetError } from "./gone-away.ts";
import { type HeaderFields, readField } from "./header-fields.ts";
import { joinBytes, peerOf } from "./http1-exchange.ts";

/**
 * An exchange carried by a stream of node:http2, by its core `stream` event: no compatibility layer.
 *
 * The stream's listeners are functions shared by all exchanges, which find theirs under a key of the
 * stream. A closure would keep the whole call alive for as long as node keeps the stream, and that is
 * long enough to outlive young-generation collection: it doubled the time spent collecting.
 */
export class Http2Exchange implements Exchange {
  readonly httpVersion = "2.0";
  readonly httpMethod: string;
  readonly target: string;
  readonly fields: HeaderFields;
  readonly bodyEmpty: boolean;
  httpStatus = 0;
  gone = false;
  addedFields: HeaderFields = none;
  listener: AbortListener | undefined;
  readonly #stream: CarryingStream;
  readonly #session: CarryingSession | undefined;
  readonly #header: IncomingHttpHeaders;
  #complete = false;
  /** Whether {@link reset} was called. */
  givenUp = false;
  #receiver: BodyReceiver | undefined;
  #limitBytes = 0;
  #bytes = 0;
  #first: Uint8Array | undefined;
  #further: Uint8Array[] | undefined;
  #trailer: HeaderFields = [];

  constructor(stream: ServerHttp2Stream, header: IncomingHttpHeaders, fields: HeaderFields) {
    this.httpMethod = header[":method"] as string;
    this.target = header[":path"] ?? "";
    this.fields = fields;
    this.bodyEmpty = stream.endAfterHeaders;
    this.#stream = stream;
    this.#header = header;
    this.#stream[exchangeKey] = this;
    this.#session = stream.session;
    if (this.#session !== undefined) {
      exchangesOf(this.#session).add(this);
      // Once the connection has closed nobody knows any more, and its calls are told of only then.
      this.#session[peerKey] ??= peerOf(this.#session.socket);
    }
    stream.on("close", Http2Exchange.#onClose);
    // A reset is reported to the call by `close`; without a listener it would end the process.
    stream.on("error", ignore);
    // A stream that is never read to its end is never freed.
    if (this.bodyEmpty) stream.resume();
  }

  get origin(): string {
    const authority = this.#header[":authority"] ?? readField(this.fields, "host") ?? "";
    return `${this.#header[":scheme"] ?? "http"}://${authority}`;
  }

  get peer(): Peer {
    return this.#session?.[peerKey] ?? peerOf(undefined);
  }

  get connection(): object {
    return this.#session ?? this.#stream;
  }

  /** Whether the client has yet to send the rest of the body, or to take what it was answered. */
  get awaitsClient(): boolean {
    return this.#stream.writableLength > 0 || (!this.bodyEmpty && !this.#stream.readableEnded);
  }

  readBody(limitBytes: number, receiver: BodyReceiver): void {
    if (this.bodyEmpty) return receiver.received(empty);
    const length = this.#header["content-length"];
    if (length !== undefined && Number(length) > limitBytes) return receiver.received(undefined);
    this.#limitBytes = limitBytes;
    this.#receiver = receiver;
    this.#continue();
    this.#stream.on("data", Http2Exchange.#onData).on("end", Http2Exchange.#onEnd);
  }

  streamBody(): AsyncIterable<Uint8Array> {
    this.#continue();
    return { [Symbol.asyncIterator]: () => this.#stream.iterator({ destroyOnReturn: false }) };
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    this.httpStatus = httpStatus;
    const head = [":status", String(httpStatus), ...fields, ...this.addedFields];
    if (trailer === undefined) {
      if (body !== undefined) head.push("content-length", String(body.byteLength));
      const endStream = body === undefined || body.byteLength === 0 || this.httpMethod === "HEAD";
      stream.respond(head, endStream ? endingHere : undefined);
      if (!endStream) stream.end(body);
    } else {
      stream.respond(head, trailerFollows);
      this.#sendTrailer(trailer);
      if (body === undefined || body.byteLength === 0) stream.end();
      else stream.end(body);
    }
    this.#finish();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    this.httpStatus = httpStatus;
    stream.respond([":status", String(httpStatus), ...fields, ...this.addedFields], trailerFollows);
  }

  write(piece: Uint8Array): Promise<void> {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return Promise.reject(resetError(stream.rstCode));
    if (stream.write(piece)) return ready;
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        stream.off("drain", settle).off("close", settle);
        if (stream.destroyed) reject(resetError(stream.rstCode));
        else resolve();
      };
      stream.on("drain", settle).on("close", settle);
    });
  }

  end(trailer: HeaderFields = []): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    this.#sendTrailer(trailer);
    stream.end();
    this.#finish();
  }

  reset(): void {
    this.givenUp = true;
    this.#stream.close(ErrorCode.internalError);
  }

  /** RFC 9110 §10.1.1: only now that the body is wanted is the client told to send it, and not if it has done so. */
  #continue(): void {
    const stream = this.#stream;
    if (this.#header.expect?.toLowerCase() !== "100-continue" || stream.readableLength > 0) return;
    if (!stream.headersSent && !stream.destroyed && !stream.closed) stream.additionalHeaders(continued);
  }

  #sendTrailer(trailer: HeaderFields): void {
    this.#trailer = trailer;
    this.#stream.on("wantTrailers", Http2Exchange.#onWantTrailers);
  }

  /**
   * Lets go of the call, and takes in what is left of a body that nobody reads: some of it may be on its
   * way already.
   *
   * What comes long after the answer has left is stopped (RFC 9113 §8.1). Not before: node's reset
   * overtakes a trailer section that was sent in the same turn of the event loop.
   */
  #finish(): void {
    const stream = this.#stream;
    this.#complete = true;
    this.#receiver = undefined;
    if (this.bodyEmpty || stream.readableEnded) return;
    this.#bytes = 0;
    // Once is enough: the reader of the body may have been this very listener.
    if (stream.listenerCount("data") === 0) stream.on("data", Http2Exchange.#onData);
    stream.resume();
  }

  #take(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    const receiver = this.#receiver;
    if (receiver === undefined) return this.#drop();
    if (this.#bytes > this.#limitBytes) {
      this.#receiver = undefined;
      receiver.received(undefined);
    } else if (this.#first === undefined) this.#first = piece;
    else (this.#further ??= [this.#first]).push(piece);
  }

  #drop(): void {
    const stream = this.#stream;
    if (!this.#complete || !stream.writableFinished || this.#bytes <= unreadBodyBytesMax) return;
    stream.close(ErrorCode.noError);
  }

  /** The body has ended. */
  #deliver(): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    const further = this.#further;
    receiver?.received(further === undefined ? (this.#first ?? empty) : joinBytes(further, this.#bytes));
  }

  #close(): void {
    this.gone = true;
    this.#receiver = undefined;
    if (this.#session !== undefined) exchangesOf(this.#session).delete(this);
    if (this.#complete) return;
    // node closes the streams of a broken connection with an error code of its own making.
    const brokenOff = this.givenUp || this.#session?.destroyed === true;
    this.listener?.aborted(brokenOff ? goneAway() : resetError(this.#stream.rstCode));
  }

  // The listeners of every stream.

  static readonly #onData = function (this: CarryingStream, piece: Uint8Array): void {
    const exchange = this[exchangeKey];
    if (exchange !== undefined) exchange.#take(piece);
  };

  static readonly #onEnd = function (this: CarryingStream): void {
    const exchange = this[exchangeKey];
    // node also ends the body of a stream that was reset or whose connection ended: that is not all of it.
    if (exchange !== undefined && !this.closed) exchange.#deliver();
  };

  static readonly #onWantTrailers = function (this: CarryingStream): void {
    const exchange = this[exchangeKey];
    // An empty section goes out as what it must be here, an empty DATA frame that ends the stream.
    if (exchange !== undefined) this.sendTrailers(toRecord(exchange.#trailer));
  };

  static readonly #onClose = function (this: CarryingStream): void {
    const exchange = this[exchangeKey];
    this[exchangeKey] = undefined;
    if (exchange !== undefined) exchange.#close();
  };
}

const exchangeKey: unique symbol = Symbol("exchange");
type CarryingStream = ServerHttp2Stream & { [exchangeKey]?: Http2Exchange | undefined };

const exchangesKey: unique symbol = Symbol("exchanges");
const peerKey: unique symbol = Symbol("peer");
type CarryingSession = Http2Session & { [exchangesKey]?: Set<Http2Exchange>; [peerKey]?: Peer };

/** The exchanges of a connection whose streams are not closed. */
export function exchangesOf(session: CarryingSession): Set<Http2Exchange> {
  return (session[exchangesKey] ??= new Set());
}

const ready = Promise.resolve();
const none: HeaderFields = [];
const empty = new Uint8Array(0);
const endingHere = { endStream: true } as const;
const continued = { ":status": 100 } as const;
const trailerFollows = { waitForTrailers: true } as const;

function ignore(): void {}

function toRecord(fields: HeaderFields): OutgoingHttpHeaders {
  const record: Record<string, string | string[]> = {};
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    const before = record[name];
    record[name] = before === undefined ? (fields[i + 1] as string) : [before, fields[i + 1] as string].flat();
  }
  return record;
}
