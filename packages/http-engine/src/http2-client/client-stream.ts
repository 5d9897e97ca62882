import { ErrorCode } from "@plantstore/gateway/exchange";
import { type FlowConnection, type FlowReceiver, StreamFlow } from "../http2/index.ts";
import type { ResponseSection } from "./response-section.ts";

/**
 * Receives the answer to a request. Nothing comes after {@link onEnd} or `onReset`, nor after `onHead` that ends it. If
 * a method throws, the stream ends with INTERNAL_ERROR; other streams go on.
 */
export interface ResponseReceiver extends FlowReceiver {
  /** Takes the header section, 1xx ones aside; `ended` if it is all of the answer. */
  onHead(head: ResponseSection, ended: boolean): void;
  /**
   * Takes a piece of the body, a view of its chunk, of which no more may be kept than `ownPiece` returns. Calls
   * `stream.consumed(bytes)` once it is used.
   */
  onData(piece: Uint8Array): void;
  /** Takes the end of the answer. */
  onEnd(trailer: ResponseSection | undefined): void;
}

/** The code that a receiver is told when its connection is over; not one of HTTP/2, where all are positive. */
export const connectionLost = -1;

/** One request and its answer: a stream of the client's. */
export class ClientStream extends StreamFlow<ResponseReceiver> {
  readonly #carrier: FlowConnection;
  #headReceived = false;
  /** Whether what ends our side has been sent. */
  #sideSent = false;

  constructor(carrier: FlowConnection, id: number, sendWindow: number, receiver: ResponseReceiver) {
    super(carrier, id, sendWindow, false);
    this.#carrier = carrier;
    this.receiver = receiver;
  }

  /** Whether the next section is the trailer. */
  get headReceived(): boolean {
    return this.#headReceived;
  }

  /** Sends the header section of the request, made of parts. */
  begin(parts: readonly Uint8Array[]): void {
    this.#carrier.output.headerBlock(this.id, false, parts);
  }

  /** Ends our side, after everything that is queued and this last piece. */
  end(piece: Uint8Array | undefined): void {
    if (!this.closed) this.endSide(piece, undefined);
  }

  /** The whole body is always wanted. */
  startBody(): void {}

  /** Takes the header section of the answer. */
  receiveHead(head: ResponseSection, ended: boolean): void {
    this.#headReceived = true;
    this.remoteEnded = ended;
    this.notify((receiver) => receiver.onHead(head, ended));
    if (ended) this.#endOfAnswer();
  }

  /** Takes a DATA frame, of `length` bytes with its padding. @returns the error in it; nothing is passed on then */
  receive(piece: Uint8Array, length: number, last: boolean): ErrorCode | undefined {
    const bytes = piece.byteLength;
    // Counted whatever is wrong with it: a stream that is reset gives its part of the connection's window back.
    if (!this.countReceived(bytes, length)) return ErrorCode.flowControlError;
    if (!this.#headReceived) return ErrorCode.protocolError;
    if (bytes > 0) this.notify((receiver) => receiver.onData(piece));
    if (last) this.receiveEnd(undefined);
    return undefined;
  }

  /** Takes the end of the answer. */
  receiveEnd(trailer: ResponseSection | undefined): void {
    this.remoteEnded = true;
    this.notify((receiver) => receiver.onEnd(trailer));
    this.#endOfAnswer();
  }

  protected sideEnded(): void {
    this.#sideSent = true;
  }

  /** RFC 9113 §8.1: a request that is answered before it is complete need not be completed. */
  #endOfAnswer(): void {
    this.receiver = undefined;
    if (this.#sideSent) this.close();
    else this.reset(ErrorCode.noError);
  }
}
