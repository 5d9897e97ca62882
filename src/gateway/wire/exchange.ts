import type { ConnectError } from "@connectrpc/connect";
import type { Peer } from "./admit.ts";
import type { HeaderFields } from "./header-fields.ts";

/**
 * One HTTP request and its answer, whatever carries them: the seam between RPC and HTTP.
 *
 * A carrier (node:http, node:http2) knows connections, flow control and what must happen to a body
 * that nobody reads; it knows nothing of RPC. The calls above know nothing of sockets. An exchange
 * is answered once: either {@link answer} whole, or {@link begin}, {@link write} …, {@link end}.
 * Once the client has gone away every one of these does nothing, so a late answer needs no check.
 */
export interface Exchange {
  readonly httpVersion: "1.0" | "1.1" | "2.0";
  readonly httpMethod: string;
  /** Path and query as sent, without scheme and authority. */
  readonly target: string;
  /** Scheme and authority, such as `http://127.0.0.1:8080`. */
  readonly origin: string;
  /** The header fields as received; in HTTP/2 the pseudo-header fields are among them. */
  readonly fields: HeaderFields;
  readonly peer: Peer;
  /** The same object for every exchange of a connection. */
  readonly connection: object;
  /** Whether it is known from the header that no byte of body follows. */
  readonly bodyEmpty: boolean;
  /** The status it was answered with; 0 while it was not. */
  readonly httpStatus: number;
  /** Fields that every answer gets, whatever it is. */
  addedFields: HeaderFields;
  /** Whether the client has gone away. */
  readonly gone: boolean;
  /** Called once if the client goes away before the answer is complete. */
  listener: AbortListener | undefined;

  /**
   * Reads the whole body and hands it to the receiver, or `undefined` as soon as it exceeds `limitBytes`.
   * Not called if the client goes away first.
   */
  readBody(limitBytes: number, receiver: BodyReceiver): void;

  /** The body as it comes in, with back-pressure. Ends the iteration with an error if the client goes away. */
  streamBody(): AsyncIterable<Uint8Array>;

  /**
   * Answers in one go. The length is announced by the carrier, so it is not among the `fields`.
   *
   * @param body - absent where the status or the method allows none, which is not the same as empty
   * @param trailer - absent when no trailer section is sent
   */
  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void;

  /** Sends the header of an answer whose body follows in pieces. */
  begin(httpStatus: number, fields: HeaderFields): void;

  /** Sends a piece of the body. Resolves when more can be taken; rejects if the client has gone away. */
  write(piece: Uint8Array): Promise<void>;

  /** Ends the answer that {@link begin} began. */
  end(trailer?: HeaderFields): void;

  /** Gives up an answer that cannot be completed, in the way the client can tell from a complete one. */
  reset(): void;
}

/** Is told when the client goes away. An object and not a function: a closure for each call is kept alive by its carrier. */
export interface AbortListener {
  aborted(reason: ConnectError): void;
}

/** Takes a body once it is there. */
export interface BodyReceiver {
  /** @param body - `undefined` when it exceeds the limit */
  received(body: Uint8Array | undefined): void;
}

/**
 * Bytes of a body that nobody wants which are read and dropped all the same, so that the connection can
 * be kept, or the answer is not lost by closing it on a client that still sends (RFC 9112 §9.6).
 */
// 256 KiB, as Go's server does: clients that send first and read later are common up to such sizes.
export const unreadBodyBytesMax: number = 256 * 1024;

/** Milliseconds that a connection stays open behind an answer whose request is still being sent. */
// A second: time for the answer to arrive and the client to stop.
export const lingerMs = 1000;
