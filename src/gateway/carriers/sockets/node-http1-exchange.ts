import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type AbortReceiver,
  authorityOf,
  type BodyReceiver,
  type CommonHeaderFields,
  type Exchange,
  goneAway,
  type HeaderFields,
  type Peer,
  readHeaderField,
  unreadBodyBytesMax,
  CollectedBytes,
} from "../index.ts";
import { lingerAtEnd } from "./linger-at-end.ts";
import { dropRest, PieceReader } from "./piece-reader.ts";
import { peerOf } from "./peer.ts";

/**
 * An exchange carried by a server of node:http that is not ours, or by Express or Fastify, whose request and response
 * objects are node's own: HTTP/1.0 and HTTP/1.1. The connection and its time-outs belong to that server.
 */
export class NodeHttp1Exchange implements Exchange {
  readonly httpVersion: "1.0" | "1.1";
  readonly httpMethod: string;
  readonly target: string;
  readonly url: string;
  readonly connection: object;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
  readonly bodyEmpty: boolean;
  httpStatus = 0;
  gone = false;
  addedFields: HeaderFields = none;
  abortReceiver: AbortReceiver | undefined;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  /** Stops collecting the body. As long as it is kept, so is the part that was collected. */
  #stopReading: () => void = ignore;
  /** Whether some of the body has been dropped. */
  #cut = false;
  #reader: PieceReader | undefined;

  /** @param target - the request target in origin form */
  constructor(request: IncomingMessage, response: ServerResponse, target: string, common: CommonHeaderFields) {
    this.httpVersion = request.httpVersionMinor === 0 ? "1.0" : "1.1";
    this.httpMethod = request.method ?? "";
    this.target = target;
    this.fields = request.rawHeaders;
    this.common = common;
    const scheme = "encrypted" in request.socket ? "https" : "http";
    this.url = `${scheme}://${authorityOf(request.url ?? "", common.host)}${target}`;
    this.connection = request.socket;
    // RFC 9112 §6.3: without Transfer-Encoding and Content-Length a request has no body.
    this.bodyEmpty = common.transferEncoding === null && (common.contentLength ?? "0") === "0";
    this.#request = request;
    this.#response = response;
    response.on("close", () => this.#closed());
  }

  get peer(): Peer {
    return peerOf(this.#request.socket);
  }

  get(name: string): string | null {
    return readHeaderField(this.fields, name);
  }

  readBody(limitBytes: number, receiver: BodyReceiver): void {
    const request = this.#request;
    if (this.bodyEmpty) return receiver.received(empty);
    if (Number(this.common.contentLength ?? 0) > limitBytes) return receiver.received(undefined);
    this.#continue();
    // A body in one piece is not copied; several pieces are, so that none of them is kept.
    let first: Uint8Array | undefined;
    let whole: CollectedBytes | undefined;
    const onData = (piece: Uint8Array): void => {
      if (first === undefined) first = piece;
      else {
        whole ??= this.#wholeBody(receiver, first);
        whole.add(piece);
      }
      if ((whole ?? first).byteLength <= limitBytes) return;
      stop();
      receiver.received(undefined);
    };
    const onEnd = (): void => {
      stop();
      receiver.received(whole?.bytes ?? first ?? empty);
    };
    const stop = (): void => {
      request.off("data", onData).off("end", onEnd);
    };
    this.#stopReading = stop;
    request.on("data", onData).on("end", onEnd);
  }

  #wholeBody(receiver: BodyReceiver, first: Uint8Array): CollectedBytes {
    const whole = new CollectedBytes(Number(this.common.contentLength ?? receiver.announcedBytes(first)));
    whole.add(first);
    return whole;
  }

  streamBody(): AsyncIterable<Uint8Array> {
    this.#continue();
    this.#reader = new PieceReader(this.#request);
    if (this.#cut) this.#reader.cut();
    return this.#reader;
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    let header = fields;
    if (trailer === undefined && body !== undefined) header = [...header, "content-length", String(body.byteLength)];
    this.#writeHeader(httpStatus, header);
    if (trailer !== undefined) response.addTrailers(toTuples(trailer));
    if (body !== undefined && body.byteLength > 0) response.write(body);
    this.#end();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    this.#writeHeader(httpStatus, fields);
    this.#response.flushHeaders();
  }

  write(piece: Uint8Array): void | Promise<void> {
    const response = this.#response;
    if (response.destroyed) return Promise.reject(goneAway());
    if (response.write(piece)) return;
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        response.off("drain", settle).off("close", settle);
        if (response.destroyed) reject(goneAway());
        else resolve();
      };
      response.on("drain", settle).on("close", settle);
    });
  }

  end(trailer?: HeaderFields): void {
    const response = this.#response;
    if (response.destroyed) return;
    if (trailer !== undefined) response.addTrailers(toTuples(trailer));
    this.#end();
  }

  reset(): void {
    // HTTP/1.1 has no other way to mark a body as incomplete (RFC 9112 §8).
    this.#request.socket.destroy();
  }

  #writeHeader(httpStatus: number, fields: HeaderFields): void {
    this.httpStatus = httpStatus;
    let header = fields;
    if (this.addedFields.length > 0) header = [...header, ...this.addedFields];
    if (!this.#bodyIsSmall()) {
      lingerAtEnd(this.#request.socket);
      if (readHeaderField(header, "connection") === null) header = [...header, "connection", "close"];
    }
    this.#response.writeHead(httpStatus, header as string[]);
  }

  /**
   * Returns whether the rest of the body is small enough to read, so that the next request can be found behind it. A
   * client that was not told to continue may or may not send its body; node itself ends such a connection.
   */
  #bodyIsSmall(): boolean {
    if (this.#request.complete || this.bodyEmpty) return true;
    const { contentLength } = this.common;
    return contentLength !== null && Number(contentLength) <= unreadBodyBytesMax;
  }

  #closed(): void {
    this.gone = true;
    if (!this.#response.writableEnded) this.abortReceiver?.aborted(goneAway());
  }

  /** Ends the answer, and drops what is left of the body as it arrives. */
  #end(): void {
    const request = this.#request;
    const response = this.#response;
    this.#stopReading();
    this.#stopReading = ignore;
    // node reads on by itself only if nobody has started reading.
    if (!request.complete) {
      this.#cut = true;
      this.#reader?.cut();
      dropRest(request.on("data", ignore));
    }
    response.end();
  }

  #continue(): void {
    // RFC 9110 §10.1.1: the client is told to send the body only once it is wanted.
    if (this.httpVersion === "1.0" || this.common.expect?.toLowerCase() !== "100-continue") return;
    if (!wasContinued(this.#response)) this.#response.writeContinue();
  }
}

/**
 * Returns whether the client was told to send its body. node does that itself, unless its server listens for
 * `checkContinue`. No public property of a response says so.
 */
function wasContinued(response: ServerResponse): boolean {
  return Reflect.get(response, "_sent100") === true;
}

function ignore(): void {}

const none: HeaderFields = [];
const empty = new Uint8Array(0);

function toTuples(fields: HeaderFields): [string, string][] {
  const tuples: [string, string][] = [];
  for (let i = 0; i < fields.length; i += 2) tuples.push([fields[i] as string, fields[i + 1] as string]);
  return tuples;
}
