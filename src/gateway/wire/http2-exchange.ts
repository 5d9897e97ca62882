import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import type { Peer } from "./admit.ts";
import { type Exchange, unreadBodyBytesMax } from "./exchange.ts";
import { type HeaderFields, readField } from "./header-fields.ts";
import { resetError } from "./gone-away.ts";
import { joinBytes, peerOf } from "./http1-exchange.ts";

/** An exchange carried by a stream of node:http2, by its core `stream` event: no compatibility layer. */
export class Http2Exchange implements Exchange {
  readonly httpVersion = "2.0";
  readonly httpMethod: string;
  readonly target: string;
  readonly fields: HeaderFields;
  readonly bodyEmpty: boolean;
  httpStatus = 0;
  gone = false;
  aborted: ((reason: ConnectError) => void) | undefined;
  readonly #stream: ServerHttp2Stream;
  readonly #header: IncomingHttpHeaders;

  constructor(stream: ServerHttp2Stream, header: IncomingHttpHeaders, fields: HeaderFields) {
    this.httpMethod = header[":method"] as string;
    this.target = (header[":path"] as string | undefined) ?? "";
    this.fields = fields;
    this.bodyEmpty = stream.endAfterHeaders;
    this.#stream = stream;
    this.#header = header;
    stream.on("close", () => {
      this.gone = true;
      if (!this.#complete) this.aborted?.(resetError(stream.rstCode));
    });
    // A reset is reported to the call by `close`; without a listener it would end the process.
    stream.on("error", ignore);
    // A stream that is never read to its end is never freed.
    if (this.bodyEmpty) stream.resume();
  }

  get origin(): string {
    const authority = this.#header[":authority"] ?? readField(this.fields, "host") ?? "";
    return `${(this.#header[":scheme"] as string | undefined) ?? "http"}://${authority}`;
  }

  get peer(): Peer {
    return peerOf(this.#stream.session?.socket);
  }

  readBody(limitBytes: number, receive: (body: Uint8Array | undefined) => void): void {
    if (this.bodyEmpty) return receive(empty);
    const length = this.#header["content-length"];
    if (length !== undefined && Number(length) > limitBytes) return receive(undefined);
    const stream = this.#stream;
    let pieces: Uint8Array[] | undefined;
    let first: Uint8Array = empty;
    let bytes = 0;
    const onData = (piece: Uint8Array): void => {
      bytes += piece.byteLength;
      if (bytes > limitBytes) {
        stream.off("data", onData).off("end", onEnd).pause();
        receive(undefined);
      } else if (bytes === piece.byteLength) first = piece;
      else (pieces ??= [first]).push(piece);
    };
    const onEnd = (): void => receive(pieces === undefined ? first : joinBytes(pieces, bytes));
    stream.on("data", onData).on("end", onEnd);
  }

  streamBody(): AsyncIterable<Uint8Array> {
    return { [Symbol.asyncIterator]: () => this.#stream.iterator({ destroyOnReturn: false }) };
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    this.httpStatus = httpStatus;
    const head = [":status", String(httpStatus), ...fields];
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
    this.#complete = true;
    this.#discardBody();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    this.httpStatus = httpStatus;
    stream.respond([":status", String(httpStatus), ...fields], trailerFollows);
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

  end(trailer?: HeaderFields): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    this.#sendTrailer(trailer ?? []);
    stream.end();
    this.#complete = true;
    this.#discardBody();
  }

  reset(): void {
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }

  #complete = false;

  #sendTrailer(trailer: HeaderFields): void {
    const stream = this.#stream;
    // An empty section goes out as what it must be here, an empty DATA frame that ends the stream.
    stream.on("wantTrailers", () => stream.sendTrailers(toRecord(trailer)));
  }

  /**
   * Takes in what is left of a body that nobody reads: some of it may be on its way already.
   *
   * What comes long after the answer has left is stopped (RFC 9113 §8.1). Not before: node's reset
   * overtakes a trailer section that was sent in the same turn of the event loop.
   */
  #discardBody(): void {
    const stream = this.#stream;
    if (this.bodyEmpty || stream.readableEnded) return;
    let bytes = 0;
    stream.on("data", (piece: Uint8Array) => {
      bytes += piece.byteLength;
      if (bytes > unreadBodyBytesMax && stream.writableFinished) stream.close(constants.NGHTTP2_NO_ERROR);
    });
  }
}

const ready = Promise.resolve();
const empty = new Uint8Array(0);
const endingHere = { endStream: true } as const;
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
