import type { CommonHeaderFields, HeaderFields, HeaderReader, RememberedFields } from "./header-fields.ts";
import type { HttpProblem } from "./http-problem.ts";
import type { RequestBody } from "./request-body.ts";

/**
 * One HTTP request and its answer, whatever carries them: the seam between RPC and HTTP.
 *
 * A carrier (our own HTTP/1.1 and HTTP/2, node:http, node:http2, Fetch) knows connections, flow control and what to do
 * with a body that nobody reads; it knows nothing of RPC. Calls know nothing of sockets. An exchange is answered once:
 * either by {@link answer} alone, or by {@link begin}, {@link write} … and {@link end}. Once the answer is complete or
 * the client has gone away these do nothing, so a late answer needs no check.
 */
export interface Exchange extends HeaderReader {
  /** `undefined` over Fetch, which does not expose it. */
  readonly httpVersion: "1.0" | "1.1" | "2.0" | undefined;
  /** Whether another server has taken the request and passed it on. */
  readonly isMounted: boolean;
  readonly httpMethod: string;
  /** Path and query as sent, without scheme and authority. */
  readonly target: string;
  /** Scheme and authority, then {@link target}: `http://127.0.0.1:8080/orders/7`. */
  readonly url: string;
  /** The header fields as received; on HTTP/2 they include the pseudo-header fields. */
  readonly fields: RememberedFields;
  /** The fields that every request is checked for. {@link HeaderReader.get} reads any other. */
  readonly common: Readonly<CommonHeaderFields>;
  readonly peer: Peer;
  /** Stands for the connection: the same object for all its exchanges, through which nothing can be done to it. */
  readonly connection: object;
  /** `undefined` where the header says that there is none. */
  readonly body: RequestBody | undefined;
  /** The status of the answer; 0 until there is one. */
  readonly httpStatus: number;
  /** Fields to add to the answer, be it a message, an error or a refusal. */
  addedFields: HeaderFields;
  /** Whether the client has gone away. */
  readonly aborted: boolean;
  /** Notified once if the client goes away. The call removes it when the answer is complete. */
  abortReceiver: AbortReceiver | undefined;

  /**
   * Answers in one go. The carrier adds the length to the `fields`.
   *
   * @param httpStatus - an integer between 200 and 599
   * @param body - absent where the status or the method allows no body, which is not the same as an empty one
   * @param trailer - absent when there is no trailer section
   * @throws before anything is sent, so that another answer may follow: RangeError for another status, TypeError for a
   * field that HTTP does not allow
   */
  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void;

  /** Sends the header of an answer whose body follows in pieces. Throws as {@link answer} does. */
  begin(httpStatus: number, fields: HeaderFields): void;

  /**
   * Sends a piece of the body. Returns a promise if the client should first take what was sent: it resolves when it
   * has, or has gone away. Pieces that are written meanwhile are kept, and get the same promise.
   */
  write(piece: Uint8Array): void | Promise<void>;

  /** Ends the answer that {@link begin} began. */
  end(trailer?: HeaderFields): void;

  /** Gives up an answer that cannot be completed, so that the client can tell that it is incomplete. */
  reset(): void;
}

/** Notified when the client goes away. An object, because carriers would keep a closure alive for each call. */
export interface AbortReceiver {
  aborted(problem: HttpProblem): void;
}

/** The statuses of answers that consist of a header section alone (RFC 9110 §15.3.5, §15.3.6, §15.4.5). */
export const statusesWithoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** The other end of the connection. */
export interface Peer {
  /** The IP address, or `unix:` on a Unix socket; empty if the socket closed before anyone read it. */
  readonly address: string;
  /** The TCP port; 0 on a Unix socket, if the socket closed before anyone read it, or if a proxy did not give one. */
  readonly port: number;
}
