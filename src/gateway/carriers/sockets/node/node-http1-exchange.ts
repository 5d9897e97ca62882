import type { IncomingMessage, ServerResponse } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import {
  authorityOf,
  type CommonHeaderFields,
  goneAway,
  type HeaderFields,
  type Peer,
  readHeaderField,
  unreadBodyBytesMax,
} from "../../index.ts";
import { lingerAtEnd } from "./linger-at-end.ts";
import { NodeExchange } from "./node-exchange.ts";
import { peerOf } from "../peer.ts";

/**
 * An exchange carried by a server of node:http that is not ours, or by Express or Fastify, whose request and response
 * objects are node's own: HTTP/1.0 and HTTP/1.1. The connection and its time-outs belong to that server.
 */
export class NodeHttp1Exchange extends NodeExchange {
  readonly httpVersion: "1.0" | "1.1";
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  /** @param target - the request target in origin form */
  constructor(request: IncomingMessage, response: ServerResponse, target: string, common: CommonHeaderFields) {
    const scheme = "encrypted" in request.socket ? "https" : "http";
    super(request, response, request.socket, {
      httpMethod: request.method ?? "",
      target,
      url: `${scheme}://${authorityOf(request.url ?? "", common.host)}${target}`,
      fields: request.rawHeaders,
      common,
      // RFC 9112 §6.3: without Transfer-Encoding and Content-Length a request has no body.
      bodyEmpty: common.transferEncoding === null && (common.contentLength ?? "0") === "0",
    });
    this.httpVersion = request.httpVersionMinor === 0 ? "1.0" : "1.1";
    this.#request = request;
    this.#response = response;
  }

  get peer(): Peer {
    return peerOf(this.#request.socket);
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
    let header = fields;
    if (this.addedFields.length > 0) header = [...header, ...this.addedFields];
    if (!this.#canStay()) {
      lingerAtEnd(this.#request.socket);
      if (readHeaderField(header, "connection") === null) header = [...header, "connection", "close"];
    }
    this.#response.writeHead(httpStatus, header as string[]);
    // Set only once all fields have been accepted.
    this.httpStatus = httpStatus;
  }

  /**
   * Returns whether the rest of the body is small enough to read, so that the next request can be found behind it. A
   * client that was not told to continue may or may not send its body, so node announces the end of the connection.
   */
  #canStay(): boolean {
    // RFC 9112 §6.1: nobody can tell where such a body ends.
    if (this.httpVersion === "1.0" && this.common.transferEncoding !== null) return false;
    if (this.#awaitsContinue()) return false;
    if (this.#request.complete || this.bodyEmpty) return true;
    const { contentLength } = this.common;
    return contentLength !== null && Number(contentLength) <= unreadBodyBytesMax;
  }

  #end(): void {
    this.complete();
    this.#response.end();
  }

  protected closeReason(): ConnectError {
    return goneAway();
  }

  protected override wanted(): void {
    if (this.#awaitsContinue()) this.#response.writeContinue();
    super.wanted();
  }

  #awaitsContinue(): boolean {
    const { expect } = this.common;
    if (expect === null || this.httpVersion === "1.0" || expect.toLowerCase() !== "100-continue") return false;
    return !wasContinued(this.#response);
  }
}

/**
 * Returns whether the client was told to send its body. node does that itself, unless its server listens for
 * `checkContinue`. No public property of a response says so.
 */
function wasContinued(response: ServerResponse): boolean {
  return Reflect.get(response, "_sent100") === true;
}

function toTuples(fields: HeaderFields): [string, string][] {
  const tuples: [string, string][] = [];
  for (let i = 0; i < fields.length; i += 2) tuples.push([fields[i] as string, fields[i + 1] as string]);
  return tuples;
}
