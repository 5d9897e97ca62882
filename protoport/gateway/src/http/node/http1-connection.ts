import { AsyncResource } from "node:async_hooks";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import {
  type Backlog,
  CommonHeaderFields,
  expectationProblem,
  type HeaderFields,
  type HttpProblem,
  type Limits,
  retiredIdleMs,
  requestTimeoutProblem,
  unsupportedVersionProblem,
} from "../exchange/index.ts";
import type { CheckedConnection, HttpConnection, HttpServerOptions } from "../listen/index.ts";
import type { ExchangeOwner } from "./exchange.ts";
import { NodeHttp1Exchange } from "./http1-exchange.ts";
import { lingerOnClose } from "./linger-on-close.ts";
import { checkNodeRequestHead } from "./check-node-request-head.ts";
import { requestsUpgrade, stopReadingAfter } from "./upgrade-request.ts";

/**
 * A connection on which a node:http server reads the requests. The node:http server does not listen, so node neither
 * enforces timeouts for heads and bodies nor counts requests. This class enforces the timeouts and counts the requests.
 *
 * Pipelined requests are served one at a time, because requests may depend on each other (RFC 9112 §9.3.2). A request
 * after the last response on the connection must not be served.
 */
export class NodeHttp1Connection implements HttpConnection, CheckedConnection, ExchangeOwner {
  readonly #socket: Socket;
  readonly #options: HttpServerOptions;
  readonly #backlog: Backlog;
  /** The exchange for the current request, until the response is sent. */
  #current: NodeHttp1Exchange | undefined;
  /** The last request that was begun. The request's body may be incomplete. */
  #request: IncomingMessage | undefined;
  /** Number of requests with complete heads that wait for earlier responses. */
  #queuedRequests = 0;
  /** Why no more requests can be read. The client gets this problem after the responses to earlier requests. */
  #problem: HttpProblem | undefined;
  /** The known header fields in the request that caused `#problem`. */
  #problemFields: HeaderFields = [];
  #isBroken = false;
  /** Whether the first request is RTSP or ICE, which node's parser reads as HTTP/1.0. */
  #isOtherProtocol = false;
  #isDraining = false;
  /** Whether the connection has reached its maximum age, so that it closes when idle for a second. */
  #isRetired = false;
  /** Time when the current wait for the client began, in `performance.now()` milliseconds. */
  #idleSinceMs = performance.now();
  /** Number of bytes that had been read from the socket when the wait began. */
  #bytesRead: number;
  /** Whether part of a request head has arrived since the wait began. */
  #isHeadBegun = false;
  #bytesWritten = 0;

  constructor(socket: Socket, options: HttpServerOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#backlog = options.budget.open(socket, () => socket.destroy());
    // Subtracts the bytes that were put back after protocol detection, because these bytes start a request head.
    this.#bytesRead = socket.bytesRead - socket.readableLength;
    socket.on("close", () => this.#backlog.close());
  }

  get busy(): boolean {
    return this.#current !== undefined;
  }

  /** Number of open requests: 1 while {@link busy}, because requests are served one at a time. */
  get requests(): number {
    return this.busy ? 1 : 0;
  }

  get isLast(): boolean {
    return this.#isBroken || (this.#isDraining && this.#queuedRequests === 0 && this.#problem === undefined);
  }

  get lingerMs(): number {
    return this.#options.limits.requestTimeoutMs;
  }

  /** Refuses the connection if the first bytes are an RTSP or ICE request. */
  onFirstBytes(bytes: Buffer | string): void {
    if (!otherProtocol.test(String(bytes))) return;
    this.#isOtherProtocol = this.#isDraining = true;
  }

  drain(): void {
    this.#isDraining = true;
  }

  retire(): void {
    this.#isDraining = this.#isRetired = true;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  onWritten(): void {
    const { bytesWritten } = this.#socket;
    this.#backlog.count(bytesWritten - this.#bytesWritten);
    this.#bytesWritten = bytesWritten;
  }

  onClosed(exchange: NodeHttp1Exchange): void {
    // The next exchange may already have replaced the closed exchange.
    if (this.#current === exchange) this.#current = undefined;
    this.#wait();
    // Begins the wait at the end of the body, because later bytes belong to the next request.
    if (this.#request?.complete === false) this.#request.once("close", () => this.#wait());
    this.#refuseRest();
  }

  /** Serves a request, or queues the request until earlier responses are sent. */
  onRequest(request: IncomingMessage, response: ServerResponse): void {
    // Requests after the last response on the connection are ignored.
    if (this.#socket.writableEnded) return;
    if (requestsUpgrade(request.rawHeaders)) stopReadingAfter(request);
    if (response.socket !== null) return this.#begin(request, response);
    this.#queuedRequests += 1;
    if (this.#queuedRequests > queuedMax) return this.destroy();
    this.pauseIfFull();
    // The request's async context is bound, because node emits "socket" in the context of the previous call.
    const begin = AsyncResource.bind(() => {
      this.#queuedRequests -= 1;
      if (this.#queuedRequests === queuedToPause - 1) this.#socket.resume();
      this.#begin(request, response);
    });
    response.once("socket", begin);
  }

  /** Refuses data that is not a valid request, after earlier responses. `fields` are its known header fields. */
  onProblem(problem: HttpProblem, fields: HeaderFields): void {
    // Only the first problem counts, because node reports the same error for each later chunk.
    if (this.#problem !== undefined) return;
    this.#problem = problem;
    this.#problemFields = fields;
    this.#refuseRest();
  }

  /** Stops reading if many requests are queued. */
  pauseIfFull(): void {
    if (this.#queuedRequests >= queuedToPause) this.#socket.pause();
  }

  checkTimeouts(nowMs: number): void {
    const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = this.#options.limits;
    if (this.#backlog.stalledMs(nowMs) >= idleTimeoutMs) return this.destroy();
    // After the last response, `lingerOnClose` has a separate timeout.
    if (this.#socket.writableEnded) return;
    const waitedMs = nowMs - this.#idleSinceMs;
    if (this.#request?.complete === false) {
      if (waitedMs >= requestTimeoutMs) this.#abortRequest(requestTimeoutProblem("requestTimeoutMs"));
    } else if (this.busy) {
      this.#idleSinceMs = nowMs;
    } else if (this.#isHeadBegun) {
      const limit = headerTimeoutMs <= requestTimeoutMs ? "headerTimeoutMs" : "requestTimeoutMs";
      if (waitedMs >= this.#options.limits[limit]) this.#refuseUnparsed(requestTimeoutProblem(limit));
    } else if (this.#socket.bytesRead > this.#bytesRead) {
      this.#isHeadBegun = true;
      this.#idleSinceMs = nowMs;
    } else if (waitedMs >= (this.#isRetired ? Math.min(retiredIdleMs, idleTimeoutMs) : idleTimeoutMs)) {
      this.#close();
    }
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const { limits, serve, refuse, report } = this.#options;
    try {
      const common = new CommonHeaderFields(request.rawHeaders);
      const target = this.#isOtherProtocol ? unsupportedVersionProblem() : checkHead(request, common, limits);
      const path = typeof target === "string" ? target : "/";
      const exchange = new NodeHttp1Exchange(request, response, path, common, this);
      this.#request = request;
      this.#current = exchange;
      if (exchange.body !== undefined) this.#idleSinceMs = performance.now();
      const isTruncated = this.#problem !== undefined && !request.complete;
      if (isTruncated) this.#refuseRest();
      else if (typeof target === "string") serve(exchange);
      else refuse(exchange, target);
    } catch (error) {
      this.destroy();
      // Errors in the gateway's own code belong to no call, so they are reported here.
      report(error, { errorCode: "ERR_CONNECTION_FAILED", what: "cannot serve an HTTP/1.1 connection" });
    }
  }

  #wait(): void {
    this.#idleSinceMs = performance.now();
    this.#bytesRead = this.#socket.bytesRead;
    this.#isHeadBegun = false;
  }

  #refuseRest(): void {
    if (this.#problem === undefined || this.#queuedRequests > 0 || this.#isBroken) return;
    // A response cannot be sent if the connection has failed or has sent its last response.
    if (!this.#socket.writable) return;
    if (this.#request?.complete === false) this.#abortRequest(this.#problem);
    else if (this.#current === undefined) this.#refuseUnparsed(this.#problem);
  }

  /** Aborts the current request, because the request cannot be read completely. */
  #abortRequest(problem: HttpProblem): void {
    this.#isBroken = true;
    const exchange = this.#current;
    if (exchange === undefined) return this.#close();
    if (exchange.httpStatus === 0) this.#options.refuse(exchange, problem);
    // The response has begun and cannot be replaced by an error.
    else this.destroy();
    exchange.failRequest(problem);
  }

  /** Refuses data that node did not parse as a request. */
  #refuseUnparsed(problem: HttpProblem): void {
    this.#isBroken = true;
    const { IncomingMessage, ServerResponse } = process.getBuiltinModule("node:http");
    const rawHeaders = [...this.#problemFields];
    const request = Object.assign(new IncomingMessage(this.#socket), placeholderRequest, { rawHeaders });
    const response = new ServerResponse(request);
    response.assignSocket(this.#socket);
    const exchange = new NodeHttp1Exchange(
      request,
      response,
      placeholderRequest.url,
      new CommonHeaderFields(rawHeaders),
      this,
    );
    this.#current = exchange;
    response.on("finish", () => {
      this.#socket.destroySoon();
      // Without a parsed request, node emits "close" only when the client has closed its side, too.
      exchange.closed();
    });
    this.#options.refuse(exchange, problem);
  }

  /** Closes the connection so that the client still receives all sent data. */
  #close(): void {
    lingerOnClose(this.#socket, this.lingerMs);
    this.#socket.destroySoon();
  }
}

function checkHead(request: IncomingMessage, common: CommonHeaderFields, limits: Limits): string | HttpProblem {
  const { expect } = common;
  const httpVersion = request.httpVersionMinor === 0 ? "1.0" : "1.1";
  const unmetExpectation = expect === null ? undefined : expectationProblem(expect, httpVersion);
  return unmetExpectation ?? checkNodeRequestHead(request, common, limits);
}

/** Number of queued heads that pauses reading. Usual clients pipeline fewer than 64 requests. */
const queuedToPause = 64;
/** Maximum queued heads before the connection is closed. One read of 64 KiB may contain 2,048 heads with 32 bytes. */
const queuedMax = 2048;

/** Matches a request line in RTSP (RFC 2326 §6.1) or ICE (Icecast's protocol). */
const otherProtocol = /^(?:\r\n)*[^\r\n]* (?:RTSP|ICE)\/\d/;

/** Placeholder properties for a request that cannot be read. */
const placeholderRequest = { method: "GET", url: "/", httpVersion: "1.1", httpVersionMajor: 1, httpVersionMinor: 1 };
