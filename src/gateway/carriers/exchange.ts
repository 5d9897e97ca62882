import { Code, ConnectError } from "@connectrpc/connect";
import type { CommonHeaderFields, HeaderFields, HeaderReader } from "./header-fields.ts";

/**
 * One HTTP request and its answer, whatever carries them: the seam between RPC and HTTP.
 *
 * A carrier (our own HTTP/1.1 and HTTP/2, node:http, node:http2, Fetch) knows connections, flow control and what to do
 * with a body that nobody reads; it knows nothing of RPC. Calls know nothing of sockets. An exchange is answered once:
 * either by {@link answer} alone, or by {@link begin}, {@link write} … and {@link end}. Once the client has gone away
 * these do nothing, so a late answer needs no check.
 */
export interface Exchange extends HeaderReader {
  /** `undefined` over Fetch, which does not expose it. */
  readonly httpVersion: "1.0" | "1.1" | "2.0" | undefined;
  readonly httpMethod: string;
  /** Path and query as sent, without scheme and authority. */
  readonly target: string;
  /** Scheme and authority, then {@link target}: `http://127.0.0.1:8080/plants/7`. */
  readonly url: string;
  /** The header fields as received; on HTTP/2 they include the pseudo-header fields. */
  readonly fields: HeaderFields;
  /** The fields that every request is checked for. {@link HeaderReader.get} reads any other. */
  readonly common: Readonly<CommonHeaderFields>;
  readonly peer: Peer;
  /** The same object for every exchange of a connection. */
  readonly connection: object;
  /** Whether the header says that there is no body. */
  readonly bodyEmpty: boolean;
  /** The status of the answer; 0 until there is one. */
  readonly httpStatus: number;
  /** Fields to add to the answer, be it a message, an error or a refusal. */
  addedFields: HeaderFields;
  /** Whether the client has gone away. */
  readonly gone: boolean;
  /** Notified once if the client goes away. The call removes it when the answer is complete. */
  abortReceiver: AbortReceiver | undefined;

  /**
   * Reads the whole body and passes it to the receiver, or `undefined` as soon as it exceeds `limitBytes`. Must not be
   * called where {@link bodyEmpty} is true. The receiver is not called if the client goes away first.
   */
  readBody(limitBytes: number, receiver: BodyReceiver): void;

  /** Returns the body as it arrives, with back-pressure. Iteration throws if the client goes away. */
  streamBody(): AsyncIterable<Uint8Array>;

  /**
   * Answers in one go. The carrier adds the length to the `fields`.
   *
   * @param body - absent where the status or the method allows no body, which is not the same as an empty one
   * @param trailer - absent when there is no trailer section
   */
  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void;

  /** Sends the header of an answer whose body follows in pieces. */
  begin(httpStatus: number, fields: HeaderFields): void;

  /**
   * Sends a piece of the body. Returns a promise if the client must first take what was sent; it resolves when more may
   * be written, and rejects if the client goes away.
   */
  write(piece: Uint8Array): void | Promise<void>;

  /** Ends the answer that {@link begin} began. */
  end(trailer?: HeaderFields): void;

  /** Gives up an answer that cannot be completed, so that the client can tell that it is incomplete. */
  reset(): void;
}

/** Notified when the client goes away. An object, because carriers would keep a closure alive for each call. */
export interface AbortReceiver {
  aborted(reason: ConnectError): void;
}

/** Receives a whole body. */
export interface BodyReceiver {
  /**
   * Returns the length that a body announces in its first piece; 0 if it announces none. Only a hint: a carrier may set
   * memory aside for it, in proportion to what has arrived.
   */
  announcedBytes(firstPiece: Uint8Array): number;
  /** @param body - `undefined` when it exceeds the limit */
  received(body: Uint8Array | undefined): void;
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

/** Returns the error that a call ends with when its client has closed the connection. */
export function goneAway(): ConnectError {
  return new ConnectError("the client has gone away", Code.Canceled);
}
