import type {
  Http2Session,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
  ServerHttp2Stream,
  ServerStreamResponseOptions,
} from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorCode } from "../../../http2/index.ts";
import {
  afterTurn,
  CommonHeaderFields,
  goneAway,
  type HeaderFields,
  type Peer,
  requireField,
  unreadBodyBytesMax,
} from "../../index.ts";
import { NodeExchange } from "./node-exchange.ts";
import { peerOf } from "../peer.ts";
import { resetError } from "../reset-error.ts";

/** An exchange carried by a stream of node:http2, through its core `stream` event instead of its compatibility layer. */
export class NodeHttp2Exchange extends NodeExchange {
  readonly httpVersion = "2.0";
  readonly #stream: CarryingStream;
  readonly #session: CarryingSession | undefined;
  #isReset = false;
  #linger: NodeJS.Timeout | undefined;

  constructor(stream: ServerHttp2Stream, header: IncomingHttpHeaders, fields: HeaderFields) {
    const common = new CommonHeaderFields(fields);
    const target = header[":path"] ?? "";
    const { session } = stream;
    super(stream, stream, session ?? stream, {
      httpMethod: header[":method"] as string,
      target,
      url: `${header[":scheme"] ?? "http"}://${header[":authority"] ?? common.host ?? ""}${target}`,
      fields,
      common,
      bodyEmpty: stream.endAfterHeaders,
    });
    this.#stream = stream;
    this.#session = session;
    // The address is unknown once the connection has closed, and calls are reported after that.
    if (this.#session !== undefined) this.#session[peerKey] ??= peerOf(this.#session.socket);
    // `close` reports a reset to the call; without a listener the error would end the process.
    stream.on("error", ignore);
    // A stream that is never read to its end is never freed.
    if (this.bodyEmpty) stream.resume();
  }

  get peer(): Peer {
    return this.#session?.[peerKey] ?? peerOf(undefined);
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    const header = [":status", String(httpStatus), ...fields, ...this.addedFields];
    if (trailer === undefined) {
      if (body !== undefined) header.push("content-length", String(body.byteLength));
      const endStream = body === undefined || body.byteLength === 0 || this.httpMethod === "HEAD";
      this.#respond(httpStatus, header, endStream ? endingHere : undefined);
      if (!endStream) stream.end(body);
    } else {
      this.#respond(httpStatus, header, trailerFollows);
      this.#sendTrailer(trailer);
      stream.end(body);
    }
    this.complete();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    this.#respond(httpStatus, [":status", String(httpStatus), ...fields, ...this.addedFields], trailerFollows);
  }

  end(trailer: HeaderFields = none): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    this.#sendTrailer(trailer);
    stream.end();
    this.complete();
  }

  reset(): void {
    this.#isReset = true;
    this.#stream.close(ErrorCode.internalError);
  }

  #respond(httpStatus: number, header: string[], options: ServerStreamResponseOptions | undefined): void {
    // Of fields that HTTP forbids node sends some, which its clients refuse, and drops others. The first is the status.
    for (let at = 2; at < header.length; at += 2) requireField(header[at] as string, header[at + 1] as string);
    this.#stream.respond(header, options);
    // Set only once all fields have been accepted.
    this.httpStatus = httpStatus;
  }

  protected override wanted(): void {
    const stream = this.#stream;
    // Without a listener for `checkContinue`, node has sent it already.
    const isDue = stream.readableLength === 0 && stream.sentInfoHeaders === undefined;
    const awaited = isDue && this.common.expect?.toLowerCase() === "100-continue";
    if (awaited && !stream.headersSent && !stream.destroyed && !stream.closed) stream.additionalHeaders(continued);
    super.wanted();
  }

  protected override consumed(bytes: number): void {
    super.consumed(bytes);
    if (this.unreadBytes > unreadBodyBytesMax) this.#stop();
  }

  #sendTrailer(trailer: HeaderFields): void {
    this.#stream[trailerKey] = trailer;
    this.#stream.on("wantTrailers", onWantTrailers);
  }

  /** Also stops a body that goes on long after the answer was sent (RFC 9113 §8.1). */
  protected override complete(): void {
    super.complete();
    if (!this.bodyEnded) this.#linger = setInterval(() => this.#stop(), lingerMs).unref();
  }

  /** Asks the client to stop sending, once the answer has been sent, its trailer section included. */
  #stop(): void {
    const { writableFinished, sentTrailers, [trailerKey]: trailer } = this.#stream;
    // DATA is finished, by node's account, before the client's window lets the last of it and the trailers pass.
    if (!writableFinished || (trailer !== undefined && sentTrailers === undefined)) return;
    // Node's reset overtakes a trailer section that was sent in the same turn of the event loop.
    afterTurn(stopReceiving, this.#stream);
  }

  protected override closed(): void {
    clearInterval(this.#linger);
    super.closed();
  }

  protected closeReason(): ConnectError {
    // node closes the streams of a broken connection with an error code of its own.
    const brokenOff = this.#isReset || this.#session?.destroyed === true;
    return brokenOff ? goneAway() : resetError(this.#stream.rstCode);
  }
}

const trailerKey: unique symbol = Symbol("trailer");
type CarryingStream = ServerHttp2Stream & { [trailerKey]?: HeaderFields };

/** Sends the trailer. All streams share this listener, for the reason that {@link NodeExchange} gives. */
function onWantTrailers(this: CarryingStream): void {
  // An empty section is sent as an empty DATA frame that ends the stream.
  this.sendTrailers(toRecord(this[trailerKey] ?? none));
}

function stopReceiving(stream: CarryingStream): void {
  stream.close(ErrorCode.noError);
}

const peerKey: unique symbol = Symbol("peer");
type CarryingSession = Http2Session & { [peerKey]?: Peer };

// Milliseconds that a client may go on sending its body after the answer: time for the answer to arrive.
const lingerMs = 1000;
const none: HeaderFields = [];
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
