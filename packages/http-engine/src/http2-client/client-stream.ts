import { ErrorCode } from "@plantstore/http";
import { type FlowConnection, type FlowReceiver, StreamFlow } from "../http2/index.ts";
import type { ResponseSection } from "./response-section.ts";

/**
 * Receives the response to a request. No method is called after {@link onEnd}, `onReset`, or an `onHead` with
 * `endStream`. If a method throws, the stream is reset with INTERNAL_ERROR; other streams continue.
 */
export interface ResponseReceiver extends FlowReceiver {
  /** Called with the final header section. `endStream` if the response has no body and no trailer. */
  onHead(head: ResponseSection, endStream: boolean): void;
  /**
   * Called with a piece of the body, a view into its chunk. Only what `detachFromChunk` returns may be kept. Must call
   * `stream.consumed(bytes)` after using it.
   */
  onData(piece: Uint8Array): void;
  /** Called when the response ends. */
  onEnd(trailer: ResponseSection | undefined): void;
}

/**
 * The code with which a receiver is reset when its connection closes. Negative, so that it differs from every HTTP/2
 * code.
 */
export const connectionLost = -1;

/** The code if the connection was closed because the server did not acknowledge a PING. */
export const serverFrozen = -2;

/** The code with which a receiver is reset when a section in its response is above the limit. */
export const sectionTooLarge = -3;

/** One request and its response: a client's stream. */
export class ClientStream extends StreamFlow<ResponseReceiver> {
  readonly #connection: FlowConnection;
  #headReceived = false;
  /** Whether END_STREAM has been sent. */
  #endStreamSent = false;

  constructor(connection: FlowConnection, id: number, sendWindow: number, receiver: ResponseReceiver) {
    super(connection, id, sendWindow, false);
    this.#connection = connection;
    this.receiver = receiver;
  }

  /** Whether the next section is the trailer. */
  get headReceived(): boolean {
    return this.#headReceived;
  }

  /** Sends the request's header section, made of parts. */
  begin(parts: readonly Uint8Array[]): void {
    this.#connection.output.headerBlock(this.id, false, parts);
  }

  /** Ends our side after the queue and this last piece. */
  end(piece: Uint8Array | undefined): void {
    if (!this.closed) this.endSide(piece, undefined);
  }

  /** Does nothing. A response body is always read. */
  startBody(): void {}

  /** Handles the response's header section. */
  receiveHead(head: ResponseSection, endStream: boolean): void {
    this.#headReceived = true;
    this.remoteEnded = endStream;
    this.notify((receiver) => receiver.onHead(head, endStream));
    if (endStream) this.#endResponse();
  }

  /**
   * Handles a DATA frame of `length` bytes including padding.
   *
   * @returns the error of an invalid frame, which does not reach the receiver
   */
  receive(piece: Uint8Array, length: number, last: boolean): ErrorCode | undefined {
    const bytes = piece.byteLength;
    // Counted even if it is invalid. A reset stream returns its bytes to the connection's window.
    if (!this.countReceived(bytes, length)) return ErrorCode.flowControlError;
    if (!this.#headReceived) return ErrorCode.protocolError;
    if (bytes > 0) this.notify((receiver) => receiver.onData(piece));
    if (last) this.receiveEnd(undefined);
    return undefined;
  }

  /** Handles a header or trailer section above the limit. Only this stream fails. */
  receiveTooLarge(endStream: boolean): void {
    this.notify((receiver) => receiver.onReset(sectionTooLarge, false));
    this.receiver = undefined;
    if (endStream && this.#endStreamSent) this.close();
    else this.reset(ErrorCode.cancel);
  }

  /** Handles the end of the response. */
  receiveEnd(trailer: ResponseSection | undefined): void {
    this.remoteEnded = true;
    this.notify((receiver) => receiver.onEnd(trailer));
    this.#endResponse();
  }

  protected sideEnded(): void {
    this.#endStreamSent = true;
  }

  /** A request need not be completed after its complete response (RFC 9113 §8.1). */
  #endResponse(): void {
    this.receiver = undefined;
    if (this.#endStreamSent) this.close();
    else this.reset(ErrorCode.noError);
  }
}
