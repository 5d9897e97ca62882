import type {
  Http2Session,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
  ServerHttp2Stream,
  ServerStreamResponseOptions,
} from "node:http2";
import {
  runAfterTurn,
  clientGoneProblem,
  type CommonHeaderFields,
  ErrorCode,
  type HeaderFields,
  type HttpProblem,
  type Peer,
  requireField,
  resetProblem,
  maxUnreadBodyBytes,
} from "../exchange/index.ts";
import { type FrameworkResponse, keyOf, NodeExchange, peerOf, withFrameworkFields } from "./exchange.ts";

/** An exchange on node:http2, created from the core event `stream` instead of the compatibility API. */
export class NodeHttp2Exchange extends NodeExchange {
  readonly httpVersion = "2.0";
  readonly #stream: StreamWithTrailer;
  readonly #session: SessionWithPeer | undefined;
  readonly #frameworkResponse: FrameworkResponse;
  #linger: NodeJS.Timeout | undefined;
  /** Number of body bytes that arrived after the response. */
  #droppedBytes = 0;

  /** @param frameworkResponse - the response from node's compatibility API. Only its header fields are read */
  constructor(
    stream: ServerHttp2Stream,
    header: IncomingHttpHeaders,
    fields: HeaderFields,
    common: CommonHeaderFields,
    frameworkResponse: FrameworkResponse,
  ) {
    const target = header[":path"] ?? "";
    const { session } = stream;
    const httpMethod = header[":method"] ?? "";
    const url = `${header[":scheme"] ?? "http"}://${header[":authority"] ?? common.host ?? ""}${target}`;
    const bodyBytes = stream.endAfterHeaders ? undefined : Number(common.contentLength ?? 0);
    super(stream, stream, { httpMethod, target, url, fields, common }, bodyBytes);
    this.#stream = stream;
    this.#session = session;
    this.#frameworkResponse = frameworkResponse;
    // Stores the address, because calls are reported after the connection has closed and the address is unavailable.
    if (this.#session !== undefined) this.#session[peerKey] ??= peerOf(this.#session.socket);
    // "close" reports a reset to the call. Without a listener, the error would exit the process.
    stream.on("error", ignore);
    // Reads the stream to its end, because node does not free a stream that is not read completely.
    if (this.body === undefined) stream.resume();
  }

  get connection(): object {
    return keyOf(this.#session ?? this.#stream);
  }

  get peer(): Peer {
    return this.#session?.[peerKey] ?? peerOf(undefined);
  }

  protected override get isOpen(): boolean {
    return super.isOpen && !this.#stream.closed;
  }

  override startBody(): void {
    const stream = this.#stream;
    // Without a listener for `checkContinue`, node has already sent 100 (Continue).
    const isDue = stream.readableLength === 0 && stream.sentInfoHeaders === undefined;
    const isExpected = isDue && this.common.expect?.toLowerCase() === "100-continue";
    if (isExpected && this.isOpen && this.httpStatus === 0) stream.additionalHeaders(continueHeader);
    super.startBody();
  }

  override consumed(bytes: number): void {
    super.consumed(bytes);
    if (!this.isComplete) return;
    this.#droppedBytes += bytes;
    if (this.#droppedBytes > maxUnreadBodyBytes) this.#stop();
  }

  protected sendResponse(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void {
    if (trailer !== undefined) {
      requireSectionSize(trailer);
      this.sendHeader(httpStatus, fields);
      if (body !== undefined) this.#stream.write(body);
      return this.sendEnd(trailer);
    }
    const length = body === undefined ? noFields : ["content-length", String(body.byteLength)];
    const endStream = body === undefined || body.byteLength === 0 || this.httpMethod === "HEAD";
    this.#respond(httpStatus, [...fields, ...length], { endStream });
    if (!endStream) this.#stream.end(body);
  }

  protected sendHeader(httpStatus: number, fields: HeaderFields): void {
    this.#respond(httpStatus, fields, { waitForTrailers: true });
  }

  protected sendEnd(trailer: HeaderFields = noFields): void {
    requireSectionSize(trailer);
    this.#stream[trailerKey] = trailer;
    this.#stream.on("wantTrailers", onWantTrailers).end();
  }

  protected sendReset(): void {
    this.#stream.close(ErrorCode.internalError);
  }

  #respond(httpStatus: number, fields: HeaderFields, options: ServerStreamResponseOptions): void {
    const header = withFrameworkFields(this.#frameworkResponse, [...fields, ...this.addedFields]);
    // Refuses fields that HTTP forbids, because node would send some that clients reject, and drop others.
    for (let at = 0; at < header.length; at += 2) requireField(header[at] ?? "", header[at + 1] ?? "");
    const section = [":status", String(httpStatus), ...header];
    requireSectionSize(section, dateFieldBytes);
    this.#stream.respond(section, options);
  }

  /** Also stops a request body if the client still sends long after the response (RFC 9113 §8.1). */
  protected override complete(): void {
    super.complete();
    if (this.body?.ended !== false) return;
    this.#linger = setInterval(() => this.#stop(), lingerMs).unref();
    if (!this.#stream[trailerKey]?.length) return;
    // Sends no WINDOW_UPDATE, like the engine's `hasFixedWindow`. Node requests data in `_read`, and delivers the data
    // that the window still allows without a request.
    Object.assign(this.#stream, { _read: ignore }).pause().resume();
  }

  /** Asks the client to stop sending after the response and its trailer section were sent. */
  #stop(): void {
    const { writableFinished, sentTrailers, [trailerKey]: trailer } = this.#stream;
    // Node reports DATA as finished before the client's window allows the last bytes and the trailer section.
    if (!writableFinished || (trailer !== undefined && sentTrailers === undefined)) return;
    // In the same event-loop turn, node would send the reset before the trailer section.
    runAfterTurn((stream) => stream.close(ErrorCode.noError), this.#stream);
  }

  override closed(): void {
    clearInterval(this.#linger);
    super.closed();
  }

  protected closeProblem(): HttpProblem {
    // When a connection fails, node closes the streams with an error code that the client has not sent.
    return this.#session?.destroyed === true ? clientGoneProblem() : resetProblem(this.#stream.rstCode, "unknown");
  }
}

const trailerKey: unique symbol = Symbol("trailer");
type StreamWithTrailer = ServerHttp2Stream & { [trailerKey]?: HeaderFields };

/** Sends the trailer section. All streams share this listener to save memory, as in {@link NodeExchange}. */
function onWantTrailers(this: StreamWithTrailer): void {
  // Node sends an empty trailer section as an empty DATA frame that ends the stream.
  this.sendTrailers(toOutgoingFields(this[trailerKey] ?? noFields));
}

/** Maximum number of bytes in a section that nghttp2 sends, with the bytes that it adds (`nghttp2_hd_deflate_bound`). */
const maxSectionBytes = 65_536;
/** Number of bytes that nghttp2 adds to each field's name and value. */
const bytesPerField = 12;
/** Number of bytes that nghttp2 adds to a section: 12 for table sizes, and 5 for a priority. */
const bytesPerSection = 17;
/** Bytes of the field `date`, which node adds to a header section: `date` and 29 characters (RFC 9110 §5.6.7). */
const dateFieldBytes = 33 + bytesPerField;

/**
 * Refuses a section that nghttp2 would not send, because node then closes the connection after its open calls.
 *
 * @throws RangeError for a section that is too large
 */
function requireSectionSize(fields: HeaderFields, addedBytes = 0): void {
  let bytes = bytesPerSection + addedBytes + (fields.length / 2) * bytesPerField;
  for (const part of fields) bytes += part.length;
  if (bytes <= maxSectionBytes) return;
  throw new RangeError(`a header or trailer section must have at most ${maxSectionBytes} bytes, got ${bytes}`);
}

const peerKey: unique symbol = Symbol("peer");
type SessionWithPeer = Http2Session & { [peerKey]?: Peer };

// Milliseconds in which a client may still send its body after the response.
const lingerMs = 1000;
const noFields: HeaderFields = [];
const continueHeader = { ":status": 100 } as const;

function ignore(): void {}

/** The object has no prototype, because a field name may be the name of an inherited property. */
function toOutgoingFields(fields: HeaderFields): OutgoingHttpHeaders {
  const record: Record<string, string | string[]> = Object.create(null);
  for (let i = 0; i < fields.length; i += 2) {
    const [name = "", value = ""] = fields.slice(i, i + 2);
    const existingValue = record[name];
    record[name] = existingValue === undefined ? value : [existingValue, value].flat();
  }
  return record;
}
