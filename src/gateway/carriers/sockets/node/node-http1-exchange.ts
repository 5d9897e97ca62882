import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import {
  authorityOf,
  clientGone,
  type CommonHeaderFields,
  type HeaderFields,
  type HttpProblem,
  unreadBodyBytesMax,
} from "../../index.ts";
import { peerOf } from "../peer.ts";
import { lingerAtEnd } from "./linger-at-end.ts";
import { NodeExchange } from "./node-exchange.ts";

/** An exchange carried by a server of node:http: HTTP/1.0 and HTTP/1.1. */
export class NodeHttp1Exchange extends NodeExchange {
  readonly httpVersion: "1.0" | "1.1";
  readonly connection: Socket;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  /** @param target - the request target in origin form */
  constructor(request: IncomingMessage, response: ServerResponse, target: string, common: CommonHeaderFields) {
    const { method: httpMethod = "", rawHeaders: fields, socket, url = "" } = request;
    const origin = `${"encrypted" in socket ? "https" : "http"}://${authorityOf(url, common.host)}`;
    // RFC 9112 §6.3: without Transfer-Encoding and Content-Length a request has no body.
    const bodyBytes = common.transferEncoding === null ? Number(common.contentLength ?? 0) || undefined : 0;
    const head = { httpMethod, target, url: origin + target, fields, common, bodyBytes };
    super(request, response, head, peerOf(socket));
    this.httpVersion = request.httpVersionMinor === 0 ? "1.0" : "1.1";
    this.connection = socket;
    this.#request = request;
    this.#response = response;
  }

  protected get isClosed(): boolean {
    return this.#response.destroyed;
  }

  override startBody(): void {
    if (this.httpStatus === 0 && this.#awaitsContinue()) this.#response.writeContinue();
    super.startBody();
  }

  protected override setHeader(httpStatus: number, fields: HeaderFields): void {
    super.setHeader(httpStatus, fields);
    if (this.#canStay()) return;
    lingerAtEnd(this.connection);
    this.#response.setHeader("connection", "close");
  }

  protected flushHeader(): void {
    this.#response.flushHeaders();
  }

  protected sendReset(): void {
    // HTTP/1.1 has no other way to mark a body as incomplete (RFC 9112 §8).
    this.connection.destroy();
  }

  protected closeProblem(): HttpProblem {
    return clientGone();
  }

  /**
   * Returns whether the rest of the body is small enough to read, so that the next request can be found behind it. A
   * client that was not told to continue may or may not send its body, so node announces the end of the connection.
   */
  #canStay(): boolean {
    // RFC 9112 §6.1: nobody can tell where such a body ends.
    if (this.httpVersion === "1.0" && this.common.transferEncoding !== null) return false;
    if (this.#awaitsContinue()) return false;
    if (this.#request.complete || this.body === undefined) return true;
    const { contentLength } = this.common;
    return contentLength !== null && Number(contentLength) <= unreadBodyBytesMax;
  }

  /**
   * Returns whether the client was not told to send its body. node does that itself, unless its server listens for
   * `checkContinue`. No public property of a response says so.
   */
  #awaitsContinue(): boolean {
    const { expect } = this.common;
    if (expect === null || this.httpVersion === "1.0" || expect.toLowerCase() !== "100-continue") return false;
    return Reflect.get(this.#response, "_sent100") !== true;
  }
}
