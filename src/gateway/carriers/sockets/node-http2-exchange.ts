import type { Http2Session, IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { ErrorCode } from "../../http2/index.ts";
import {
  type AbortReceiver,
  type BodyReceiver,
  CommonHeaderFields,
  type Exchange,
  goneAway,
  type HeaderFields,
  type Peer,
  readHeaderField,
  unreadBodyBytesMax,
  CollectedBytes,
} from "../index.ts";
import { dropRest, PieceReader } from "./piece-reader.ts";
import { peerOf } from "./peer.ts";
import { resetError } from "./reset-error.ts";

/**
 * An exchange carried by a stream of node:http2, through its core `stream` event instead of its compatibility layer.
 *
 * All streams share their event listeners, which find the exchange under a symbol of the stream. Closures would keep
 * each call alive for as long as node keeps its stream. That is longer than young objects live, and doubles the time of
 * garbage collection.
 */
export class NodeHttp2Exchange implements Exchange {
  readonly httpVersion = "2.0";
  readonly httpMethod: string;
  readonly target: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
  readonly bodyEmpty: boolean;
  httpStatus = 0;
  gone = false;
  addedFields: HeaderFields = none;
  abortReceiver: AbortReceiver | undefined;
  readonly #stream: CarryingStream;
  readonly #session: CarryingSession | undefined;
  readonly #header: IncomingHttpHeaders;
  #complete = false;
  /** Whether some of the body has been dropped. */
  #cut = false;
  #reader: PieceReader | undefined;
  /** Whether {@link reset} was called. */
  givenUp = false;
  #receiver: BodyReceiver | undefined;
  #limitBytes = 0;
  #bytes = 0;
  #first: Uint8Array | undefined;
  #whole: CollectedBytes | undefined;
  #trailer: HeaderFields = [];
  #linger: NodeJS.Timeout | undefined;

  constructor(stream: ServerHttp2Stream, header: IncomingHttpHeaders, fields: HeaderFields) {
    this.httpMethod = header[":method"] as string;
    this.target = header[":path"] ?? "";
    this.fields = fields;
    this.common = new CommonHeaderFields(fields);
    this.bodyEmpty = stream.endAfterHeaders;
    this.#stream = stream;
    this.#header = header;
    this.#stream[exchangeKey] = this;
    this.#session = stream.session;
    if (this.#session !== undefined) {
      exchangesOf(this.#session).add(this);
      // The address is unknown once the connection has closed, and calls are reported after that.
      this.#session[peerKey] ??= peerOf(this.#session.socket);
    }
    stream.on("close", NodeHttp2Exchange.#onClose);
    // `close` reports a reset to the call; without a listener the error would end the process.
    stream.on("error", ignore);
    // A stream that is never read to its end is never freed.
    if (this.bodyEmpty) stream.resume();
  }

  get url(): string {
    const authority = this.#header[":authority"] ?? this.common.host ?? "";
    return `${this.#header[":scheme"] ?? "http"}://${authority}${this.target}`;
  }

  get(name: string): string | null {
    return readHeaderField(this.fields, name);
  }

  get peer(): Peer {
    return this.#session?.[peerKey] ?? peerOf(undefined);
  }

  get connection(): object {
    return this.#session ?? this.#stream;
  }

  /** Whether the client still has to send the rest of the body, or to read its answer. */
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
    this.#stream.on("data", NodeHttp2Exchange.#onData).on("end", NodeHttp2Exchange.#onEnd);
  }

  streamBody(): AsyncIterable<Uint8Array> {
    this.#continue();
    this.#reader = new PieceReader(this.#stream);
    if (this.#cut) this.#reader.cut();
    return this.#reader;
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    this.httpStatus = httpStatus;
    const header = [":status", String(httpStatus), ...fields, ...this.addedFields];
    if (trailer === undefined) {
      if (body !== undefined) header.push("content-length", String(body.byteLength));
      const endStream = body === undefined || body.byteLength === 0 || this.httpMethod === "HEAD";
      stream.respond(header, endStream ? endingHere : undefined);
      if (!endStream) stream.end(body);
    } else {
      stream.respond(header, trailerFollows);
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

  write(piece: Uint8Array): void | Promise<void> {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return Promise.reject(resetError(stream.rstCode));
    if (stream.write(piece)) return;
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

  /** RFC 9110 §10.1.1: the client is told to send the body only once it is wanted, and not if some has arrived. */
  #continue(): void {
    const stream = this.#stream;
    if (this.#header.expect?.toLowerCase() !== "100-continue" || stream.readableLength > 0) return;
    if (!stream.headersSent && !stream.destroyed && !stream.closed) stream.additionalHeaders(continued);
  }

  #sendTrailer(trailer: HeaderFields): void {
    this.#trailer = trailer;
    this.#stream.on("wantTrailers", NodeHttp2Exchange.#onWantTrailers);
  }

  /**
   * Releases the call and what was received of its body, and drops the rest as it arrives.
   *
   * A long body, or one that goes on long after the answer was sent, is stopped (RFC 9113 §8.1). Not earlier: node's
   * reset overtakes a trailer section sent in the same turn of the event loop.
   */
  #finish(): void {
    const stream = this.#stream;
    this.#complete = true;
    this.#receiver = undefined;
    this.#first = undefined;
    this.#whole = undefined;
    if (this.bodyEmpty || stream.readableEnded) return;
    this.#bytes = 0;
    this.#cut = true;
    this.#reader?.cut();
    this.#linger = setInterval(() => this.#stop(), lingerMs).unref();
    // Not twice: the body may have been read by this same listener.
    if (stream.listenerCount("data") === 0) stream.on("data", NodeHttp2Exchange.#onData);
    dropRest(stream);
  }

  #take(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    const receiver = this.#receiver;
    if (receiver === undefined) {
      if (this.#complete && this.#bytes > unreadBodyBytesMax) this.#stop();
      return;
    }
    if (this.#bytes > this.#limitBytes) {
      this.#receiver = undefined;
      receiver.received(undefined);
    } else if (this.#first === undefined) this.#first = piece;
    else {
      this.#whole ??= this.#wholeBody(receiver, this.#first);
      this.#whole.add(piece);
    }
  }

  #wholeBody(receiver: BodyReceiver, first: Uint8Array): CollectedBytes {
    const whole = new CollectedBytes(Number(this.#header["content-length"] ?? receiver.announcedBytes(first)));
    whole.add(first);
    return whole;
  }

  /** Asks the client to stop sending, once the answer has been sent. */
  #stop(): void {
    if (this.#stream.writableFinished) this.#stream.close(ErrorCode.noError);
  }

  /** Passes the complete body on. */
  #deliver(): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    receiver?.received(this.#whole?.bytes ?? this.#first ?? empty);
  }

  #close(): void {
    this.gone = true;
    this.#receiver = undefined;
    clearInterval(this.#linger);
    if (this.#session !== undefined) exchangesOf(this.#session).delete(this);
    if (this.#complete) return;
    // node closes the streams of a broken connection with an error code of its own.
    const brokenOff = this.givenUp || this.#session?.destroyed === true;
    this.abortReceiver?.aborted(brokenOff ? goneAway() : resetError(this.#stream.rstCode));
  }

  // The event listeners that all streams share.

  static readonly #onData = function (this: CarryingStream, piece: Uint8Array): void {
    const exchange = this[exchangeKey];
    if (exchange !== undefined) exchange.#take(piece);
  };

  static readonly #onEnd = function (this: CarryingStream): void {
    const exchange = this[exchangeKey];
    // node also ends the body of a stream that was reset, or whose connection ended; that body is incomplete.
    if (exchange !== undefined && !this.closed) exchange.#deliver();
  };

  static readonly #onWantTrailers = function (this: CarryingStream): void {
    const exchange = this[exchangeKey];
    // An empty section is sent as an empty DATA frame that ends the stream.
    if (exchange !== undefined) this.sendTrailers(toRecord(exchange.#trailer));
  };

  static readonly #onClose = function (this: CarryingStream): void {
    const exchange = this[exchangeKey];
    this[exchangeKey] = undefined;
    if (exchange !== undefined) exchange.#close();
  };
}

const exchangeKey: unique symbol = Symbol("exchange");
type CarryingStream = ServerHttp2Stream & { [exchangeKey]?: NodeHttp2Exchange | undefined };

const exchangesKey: unique symbol = Symbol("exchanges");
const peerKey: unique symbol = Symbol("peer");
type CarryingSession = Http2Session & { [exchangesKey]?: Set<NodeHttp2Exchange>; [peerKey]?: Peer };

/** Returns the exchanges of a session whose streams are still open. */
export function exchangesOf(session: CarryingSession): Set<NodeHttp2Exchange> {
  return (session[exchangesKey] ??= new Set());
}

// Milliseconds that a client may go on sending its body after the answer: time for the answer to arrive.
const lingerMs = 1000;
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
