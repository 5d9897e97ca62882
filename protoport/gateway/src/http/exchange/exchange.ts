import {
  type CachedFields,
  type CommonHeaderFields,
  type HeaderFields,
  type HeaderReader,
  readHeaderField,
} from "./header-fields.ts";
import type { HttpProblem } from "./http-problem.ts";
import type { RequestBody } from "./request-body.ts";

/**
 * One HTTP request and its response: the interface between RPC and HTTP implementations.
 *
 * An HTTP implementation (the engine, node:http, node:http2, Fetch) handles connections, flow control
 * and unread bodies, and is independent of RPC. Calls are independent of sockets. An exchange gets one response, either
 * with {@link respond}, or with {@link begin}, {@link write} … and {@link end}. After the response is complete or the
 * client has disconnected, these methods do nothing, so a late response needs no check.
 */
export interface Exchange extends HeaderReader {
  /** The HTTP version, or `undefined` over Fetch, which does not expose the version. */
  readonly httpVersion: "1.0" | "1.1" | "2.0" | undefined;
  /** Whether the gateway is mounted in the program's server, which has received the request. */
  readonly isMounted: boolean;
  readonly httpMethod: string;
  /** The request target: path and query as sent, without scheme and authority. */
  readonly target: string;
  /** The request URL: scheme, authority and {@link target}, such as `http://127.0.0.1:8080/orders/7`. */
  readonly url: string;
  /** The header fields as received. On HTTP/2 the fields include the pseudo-header fields. */
  readonly fields: CachedFields;
  /** The header fields that are read for every request. {@link HeaderReader.get} reads other fields. */
  readonly common: Readonly<CommonHeaderFields>;
  readonly peer: Peer;
  /** Identifies the connection, without access to the socket. All exchanges on a connection have the same object. */
  readonly connection: object;
  /** The request body, or `undefined` if the header announces no body. */
  readonly body: RequestBody | undefined;
  /** The response status, or 0 before the response. */
  readonly httpStatus: number;
  /** Header fields that are added to every response, including errors and refusals. */
  addedFields: HeaderFields;
  /** Whether the client has disconnected. */
  readonly aborted: boolean;
  /** Notified once if the client disconnects. The call unsets the receiver when the response is complete. */
  abortReceiver: AbortReceiver | undefined;

  /**
   * Sends a complete response. The body length is added to the `fields`.
   *
   * @param httpStatus - an integer between 200 and 599. With {@link statusesWithoutBody}, the body is dropped
   * @param body - absent if the method does not allow a body, otherwise possibly empty
   * @param trailer - absent if the response has no trailer section
   * @throws RangeError for an invalid status, or TypeError for a field that HTTP does not allow, before sending
   * anything, so that another response can follow
   */
  respond(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void;

  /** Sends the header for a response with a body in pieces. Throws like {@link respond}. */
  begin(httpStatus: number, fields: HeaderFields): void;

  /**
   * Sends a piece of the body. Returns a promise if the caller should wait until the client has read enough or has
   * disconnected. Until the promise settles, further writes buffer their pieces and return the same promise.
   */
  write(piece: Uint8Array): void | Promise<void>;

  /** Completes the response that {@link begin} has started. */
  end(trailer?: HeaderFields): void;

  /** Aborts a response that cannot be completed, so that the client detects an incomplete response. */
  reset(): void;
}

/** Notified when the client disconnects. An object, because a callback would keep a closure per call in memory. */
export interface AbortReceiver {
  clientAborted(problem: HttpProblem): void;
}

/** The response statuses without a body (RFC 9110 §15.3.5, §15.3.6, §15.4.5). */
export const statusesWithoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** The remote address and port of a connection. */
export interface Peer {
  /** The IP address, or `unix:` on a Unix socket. Empty if the socket closed before the address was read. */
  readonly address: string;
  /** The TCP port. 0 on a Unix socket, if the socket closed before the port was read, or if a proxy sent no port. */
  readonly port: number;
}

/** The properties of a request that are known from the header. */
export interface ExchangeHead {
  readonly httpMethod: string;
  readonly target: string;
  readonly url: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
}

/** Base class for exchanges. Handles the order of method calls, backpressure and disconnected clients. */
export abstract class BaseExchange implements Exchange {
  abstract readonly httpVersion: Exchange["httpVersion"];
  abstract readonly isMounted: boolean;
  abstract readonly peer: Peer;
  abstract readonly connection: object;
  abstract readonly body: RequestBody | undefined;
  readonly httpMethod: string;
  readonly target: string;
  readonly url: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
  httpStatus = 0;
  aborted = false;
  addedFields: HeaderFields = noFields;
  abortReceiver: AbortReceiver | undefined;
  protected isComplete = false;
  /** Resolves when more of the response can be written, or when the client has disconnected. */
  #writable: PromiseWithResolvers<void> | undefined;

  constructor({ httpMethod, target, url, fields, common }: ExchangeHead) {
    this.httpMethod = httpMethod;
    this.target = target;
    this.url = url;
    this.fields = fields;
    this.common = common;
  }

  /** Sends a complete response. Throws before sending anything if HTTP does not allow a field. */
  protected abstract sendResponse(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void;
  /** Sends a response header. Throws like {@link sendResponse}. */
  protected abstract sendHeader(httpStatus: number, fields: HeaderFields): void;
  /** Sends a piece of the body. Returns whether the caller should wait until the client has read some data. */
  protected abstract sendPiece(piece: Uint8Array): boolean;
  protected abstract sendEnd(trailer: HeaderFields | undefined): void;
  protected abstract sendReset(): void;

  get(name: string): string | null {
    return readHeaderField(this.fields, name);
  }

  /** Whether a response can still be sent. */
  protected get isOpen(): boolean {
    return !this.aborted && !this.isComplete;
  }

  get #canRespond(): boolean {
    return this.isOpen && this.httpStatus === 0;
  }

  respond(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    if (!this.#canRespond) return;
    requireFinalStatus(httpStatus);
    this.httpStatus = httpStatus;
    try {
      // A dropped body has no Content-Length, which RFC 9110 §8.6 forbids for 204, and for 304 unless 200 has the same.
      this.sendResponse(httpStatus, fields, statusesWithoutBody.has(httpStatus) ? undefined : body, trailer);
    } catch (error) {
      this.httpStatus = 0;
      throw error;
    }
    this.complete();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (!this.#canRespond) return;
    requireFinalStatus(httpStatus);
    this.sendHeader(httpStatus, fields);
    this.httpStatus = httpStatus;
  }

  write(piece: Uint8Array): void | Promise<void> {
    if (!this.isOpen || !this.sendPiece(piece)) return;
    return (this.#writable ??= Promise.withResolvers<void>()).promise;
  }

  end(trailer?: HeaderFields): void {
    if (!this.isOpen) return;
    this.sendEnd(trailer);
    this.complete();
  }

  reset(): void {
    if (this.isOpen) this.sendReset();
  }

  onWritable(): void {
    this.#writable?.resolve();
    this.#writable = undefined;
  }

  /** Aborts the exchange, because the rest of the request will not arrive, or the response cannot be delivered. */
  protected abort(problem: HttpProblem): void {
    this.aborted = true;
    this.body?.close(problem);
    this.onWritable();
    this.abortReceiver?.clientAborted(problem);
  }

  /** Drops the unread request body, including bytes that arrive later. */
  protected complete(): void {
    this.isComplete = true;
    this.body?.close();
  }
}

const noFields: HeaderFields = [];

/** Throws RangeError for a status that is not final. Statuses from 100 to 199 are interim (RFC 9110 §15). */
function requireFinalStatus(httpStatus: number): void {
  if (Number.isInteger(httpStatus) && httpStatus >= 200 && httpStatus <= 599) return;
  throw new RangeError(`the HTTP status must be an integer between 200 and 599, got ${httpStatus}`);
}
