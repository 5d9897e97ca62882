import type { CommonHeaderFields, HeaderFields, HeaderReader, RememberedFields } from "./header-fields.ts";
import type { HttpProblem } from "./http-problem.ts";
import type { RequestBody } from "./request-body.ts";

/**
 * One HTTP request and its response: the interface between RPC and HTTP.
 *
 * An HTTP implementation (`@plantstore/http-engine`, node:http, node:http2, Fetch) handles connections, flow control
 * and unread bodies, and does not know RPC. Calls do not know sockets. An exchange gets one response, either by {@link
 * respond} alone, or by {@link begin}, {@link write} … and {@link end}. Once the response is complete or the client has
 * disconnected, these do nothing, so a late response needs no check.
 */
export interface Exchange extends HeaderReader {
  /** The HTTP version, or `undefined` over Fetch, which does not expose it. */
  readonly httpVersion: "1.0" | "1.1" | "2.0" | undefined;
  /** Whether the gateway is mounted: the program's server has received the request and passed it on. */
  readonly isMounted: boolean;
  readonly httpMethod: string;
  /** Path and query as sent, without scheme and authority. */
  readonly target: string;
  /** Scheme and authority, then {@link target}: `http://127.0.0.1:8080/orders/7`. */
  readonly url: string;
  /** The header fields as received. On HTTP/2 they include the pseudo-header fields. */
  readonly fields: RememberedFields;
  /** The fields that are read for every request. {@link HeaderReader.get} reads any other. */
  readonly common: Readonly<CommonHeaderFields>;
  readonly peer: Peer;
  /** Identifies the connection. All its exchanges have the same object, which gives no access to the socket. */
  readonly connection: object;
  /** `undefined` if the header announces no body. */
  readonly body: RequestBody | undefined;
  /** The response status, or 0 until there is one. */
  readonly httpStatus: number;
  /** Fields to add to the response, also to errors and refusals. */
  addedFields: HeaderFields;
  /** Whether the client has disconnected. */
  readonly aborted: boolean;
  /** Notified once if the client disconnects. The call unsets it when the response is complete. */
  abortReceiver: AbortReceiver | undefined;

  /**
   * Sends a complete response. Its length is added to the `fields`.
   *
   * @param httpStatus - an integer between 200 and 599
   * @param body - absent if the status or the method does not allow a body, which differs from an empty body
   * @param trailer - absent when there is no trailer section
   * @throws RangeError for an invalid status, TypeError for a field that HTTP does not allow; nothing has been sent
   * then, so another response can follow
   */
  respond(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void;

  /** Sends the header for a response whose body follows in pieces. Throws as {@link respond} does. */
  begin(httpStatus: number, fields: HeaderFields): void;

  /**
   * Sends a piece of the body. Returns a promise if the caller should wait for the client. The promise resolves when
   * the client has read enough, or has disconnected. Pieces written meanwhile are buffered, and get the same promise.
   */
  write(piece: Uint8Array): void | Promise<void>;

  /** Ends the response that {@link begin} began. */
  end(trailer?: HeaderFields): void;

  /** Aborts a response that cannot be completed, so that the client detects that it is incomplete. */
  reset(): void;
}

/**
 * Notified when the client disconnects. An object, because the exchange would keep a separate closure alive for each
 * call.
 */
export interface AbortReceiver {
  clientAborted(problem: HttpProblem): void;
}

/** The response statuses that have only a header section (RFC 9110 §15.3.5, §15.3.6, §15.4.5). */
export const statusesWithoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** The connection's other end. */
export interface Peer {
  /** The IP address, or `unix:` on a Unix socket. Empty if the socket closed before the address was read. */
  readonly address: string;
  /** The TCP port. 0 on a Unix socket, if the socket closed before the port was read, or if a proxy sent none. */
  readonly port: number;
}
