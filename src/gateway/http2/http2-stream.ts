import { frameBytesMax } from "./frame.ts";
import type { ErrorCode } from "./http2-error.ts";
import type { RequestHead } from "./request-head.ts";

/** Who is told what happens on a stream. */
export interface StreamReceiver {
  /** A piece of the body, valid beyond the call. To be followed by `stream.consumed(bytes)` once it is used. */
  onData(piece: Uint8Array): void;
  /** The body is complete. */
  onEnd(): void;
  /** The stream is over before its time: the code that the peer, or we, reset it with. */
  onReset(code: number): void;
  /** All that was queued has been sent, as far as HTTP/2 is concerned. */
  onWritable(): void;
}

/** What a stream needs of its connection. */
export interface StreamCarrier {
  /** What may be sent on all streams together. */
  sendWindow: number;
  readonly congested: boolean;
  sendHeaders(streamId: number, endStream: boolean, parts: readonly Uint8Array[]): void;
  sendData(streamId: number, endStream: boolean, piece: Uint8Array): void;
  sendReset(stream: Http2Stream, code: ErrorCode): void;
  /** The stream has something to send that the windows or the socket do not take now. */
  block(stream: Http2Stream): void;
  /** The stream's body was used up to this; the peer may send as much again. */
  credit(stream: Http2Stream, bytes: number): void;
  /** Our side of the stream has ended. */
  ended(stream: Http2Stream): void;
}

/**
 * One request and its answer: the state of a stream (RFC 9113 §5.1) and what waits to be sent on it.
 *
 * A small record, not a Duplex. Bodies are pieces of the chunks that came in, and go out as they are given.
 */
export class Http2Stream {
  readonly id: number;
  readonly head: RequestHead;
  /** The request's header list was larger than the limit: `head` is what fits. */
  readonly headTooLarge: boolean;
  receiver: StreamReceiver | undefined;
  /** The peer has ended its side. */
  remoteEnded = false;
  /** We have ended ours, or have all that ends it in the queue. */
  localEnded = false;
  /** Neither side may send any more. */
  closed = false;
  sendWindow: number;
  receiveWindow: number;
  receivedBytes = 0;
  /** Bytes that were used and for which the peer has not been given new credit. */
  uncreditedBytes = 0;
  readonly openedAtMs: number;
  /** Since when something waits to be sent; 0 while nothing does. */
  blockedSinceMs = 0;
  readonly #carrier: StreamCarrier;
  #queue: Uint8Array[] = none;
  #queuedBytes = 0;
  /** What ends the stream behind the queue: a trailer block, or nothing but the end. */
  #ending: readonly Uint8Array[] | undefined;

  constructor(
    carrier: StreamCarrier,
    id: number,
    head: RequestHead,
    headTooLarge: boolean,
    windows: { readonly send: number; readonly receive: number; readonly nowMs: number },
  ) {
    this.#carrier = carrier;
    this.id = id;
    this.head = head;
    this.headTooLarge = headTooLarge;
    this.sendWindow = windows.send;
    this.receiveWindow = windows.receive;
    this.openedAtMs = windows.nowMs;
  }

  /** Bytes of body that wait to be sent. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Sends a header section: informational, or the one of the answer. */
  sendHeaders(parts: readonly Uint8Array[], endStream: boolean): void {
    if (this.closed || this.localEnded) return;
    this.#carrier.sendHeaders(this.id, endStream, parts);
    if (endStream) this.#end();
  }

  /** Sends a piece of the body, or as much of it as the windows take now. */
  sendData(piece: Uint8Array): void {
    if (!this.closed && !this.localEnded && piece.byteLength > 0) this.#enqueue(piece);
  }

  /**
   * Ends our side, behind all that waits.
   *
   * @param piece - the last piece of the body
   * @param trailer - the header block of the trailer section; without one the last piece says that it is the last
   */
  end(piece: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    if (this.closed || this.localEnded) return;
    this.localEnded = true;
    this.#ending = trailer === undefined ? none : [trailer];
    if (piece !== undefined && piece.byteLength > 0) this.#enqueue(piece);
    else if (this.#queue.length === 0) this.#sendEnding();
  }

  /** Ends both sides at once. */
  reset(code: ErrorCode): void {
    if (!this.closed) this.#carrier.sendReset(this, code);
  }

  /** The receiver has used so many bytes of the body. */
  consumed(bytes: number): void {
    this.#carrier.credit(this, bytes);
  }

  /**
   * Sends what waits, as far as the windows and the socket take it.
   *
   * @param framesMax - leaves room for other streams in between
   * @returns whether something is left
   */
  sendQueued(framesMax: number = Number.POSITIVE_INFINITY): boolean {
    const carrier = this.#carrier;
    for (let frames = 0; frames < framesMax; frames++) {
      const piece = this.#queue[0];
      if (piece === undefined) break;
      const allowed = Math.min(this.sendWindow, carrier.sendWindow, frameBytesMax);
      if (allowed <= 0 || carrier.congested) {
        carrier.block(this);
        return true;
      }
      this.#sendPiece(piece, allowed);
    }
    if (this.#queue.length > 0) {
      carrier.block(this);
      return true;
    }
    this.blockedSinceMs = 0;
    if (this.#ending !== undefined && this.#queuedBytes === 0 && !this.closed) this.#sendEnding();
    else this.receiver?.onWritable();
    return false;
  }

  #enqueue(piece: Uint8Array): void {
    if (this.#queue.length === 0) this.#queue = [];
    this.#queue.push(piece);
    this.#queuedBytes += piece.byteLength;
    if (this.blockedSinceMs === 0) this.sendQueued();
  }

  #sendPiece(piece: Uint8Array, allowed: number): void {
    const fits = piece.byteLength <= allowed;
    const part = fits ? piece : piece.subarray(0, allowed);
    if (fits) this.#queue.shift();
    else this.#queue[0] = piece.subarray(allowed);
    const bytes = part.byteLength;
    this.#queuedBytes -= bytes;
    this.sendWindow -= bytes;
    this.#carrier.sendWindow -= bytes;
    const last = this.#queuedBytes === 0 && this.#ending === none;
    this.#carrier.sendData(this.id, last, part);
    if (last) {
      this.#ending = undefined;
      this.#end();
    }
  }

  #sendEnding(): void {
    const ending = this.#ending;
    this.#ending = undefined;
    if (ending === none) this.#carrier.sendData(this.id, true, noBytes);
    else if (ending !== undefined) this.#carrier.sendHeaders(this.id, true, ending);
    this.#end();
  }

  #end(): void {
    this.localEnded = true;
    this.#carrier.ended(this);
  }
}

const none: Uint8Array[] = [];
const noBytes = new Uint8Array(0);
