import { ErrorCode } from "./http2-error.ts";
import type { RequestHead } from "./request-head.ts";
import type { ReceiveFlow } from "./receive-flow.ts";
import type { SendFlow } from "./send-flow.ts";

/** Who is told what happens on a stream. What it throws ends the stream with INTERNAL_ERROR, and no other. */
export interface StreamReceiver {
  /**
   * A piece of the body: a view of what came in, valid beyond the call, though keeping it keeps its whole chunk.
   * To be followed by `stream.consumed(bytes)` once it is used. With the last one `stream.remoteEnded` is set.
   */
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
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  sendHeaders(streamId: number, endStream: boolean, parts: readonly Uint8Array[]): void;
  sendData(streamId: number, endStream: boolean, piece: Uint8Array): void;
  sendReset(stream: Http2Stream, code: ErrorCode): void;
  /** Our side of the stream has ended. */
  ended(stream: Http2Stream): void;
  /** Who serves the stream has thrown. */
  faulted(error: unknown): void;
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
  readonly openedAtMs: number;
  receiver: StreamReceiver | undefined;
  /** The whole body is waited for, so there is a time by which it must be there. */
  bodyAwaited = false;
  /** The peer has ended its side. */
  remoteEnded = false;
  /** We have ended ours, or have all that ends it in the queue. */
  localEnded = false;
  /** Neither side may send any more. */
  closed = false;
  /** What the peer lets us send; negative where it has taken room back (RFC 9113 §6.9.2). */
  sendWindow: number;
  receiveWindow: number;
  /** Bytes of body that have come in. */
  receivedBytes = 0;
  /** Of these, with their padding, the bytes that nobody has used. */
  heldBytes = 0;
  /** Bytes that were used and for which the peer has not been given new credit. */
  uncreditedBytes = 0;
  /** Since when something waits to be sent, and when the peer took something last. Meaningless while nothing waits. */
  waitsSinceMs = 0;
  progressAtMs = 0;
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
    opening: { readonly sendWindow: number; readonly nowMs: number },
  ) {
    this.#carrier = carrier;
    this.id = id;
    this.head = head;
    this.headTooLarge = headTooLarge;
    this.sendWindow = opening.sendWindow;
    this.receiveWindow = carrier.receiveFlow.streamWindowBytes;
    this.openedAtMs = opening.nowMs;
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
    if (this.#queuedBytes === 0) this.#sendEnding();
  }

  /** Ends both sides at once. */
  reset(code: ErrorCode): void {
    if (!this.closed) this.#carrier.sendReset(this, code);
  }

  /** The receiver has used so many bytes of the body. */
  consumed(bytes: number): void {
    this.#carrier.receiveFlow.used(this, bytes);
  }

  /** Nobody wants what came in of the body and was not used: it is as good as used. */
  discard(): void {
    this.#carrier.receiveFlow.used(this, this.heldBytes);
  }

  /** Sends a frame of what waits; the windows must have room for it. Other streams get their turn in between. */
  sendNext(): void {
    const piece = this.#queue[0];
    if (piece === undefined) return;
    const bytes = Math.min(piece.byteLength, this.#carrier.sendFlow.allowance(this));
    if (bytes === piece.byteLength) this.#queue.shift();
    else this.#queue[0] = piece.subarray(bytes);
    this.#queuedBytes -= bytes;
    this.#carrier.sendFlow.release(this, bytes, this.#queuedBytes === 0);
    this.#sendPart(piece.subarray(0, bytes), this.#queuedBytes === 0);
    if (this.#queuedBytes > 0 || this.closed) return;
    if (this.localEnded) this.#sendEnding();
    else this.#tellWritable();
  }

  /** The request is there: hands it to who serves it. */
  begin(serve: (stream: Http2Stream) => void): void {
    try {
      serve(this);
    } catch (error) {
      this.#fault(error);
    }
  }

  /** The peer sent a piece of the body. */
  receive(piece: Uint8Array): void {
    try {
      this.receiver?.onData(piece);
    } catch (error) {
      this.#fault(error);
    }
  }

  /** The peer has ended its side. */
  receiveEnd(): void {
    try {
      this.receiver?.onEnd();
    } catch (error) {
      this.#fault(error);
    }
  }

  /** The stream is over: lets go of what waits and tells the receiver. */
  receiveReset(code: number): void {
    if (this.#queuedBytes > 0) this.#carrier.sendFlow.release(this, this.#queuedBytes, true);
    this.#queue = none;
    this.#queuedBytes = 0;
    this.#ending = undefined;
    try {
      this.receiver?.onReset(code);
    } catch (error) {
      this.#fault(error);
    }
  }

  #tellWritable(): void {
    try {
      this.receiver?.onWritable();
    } catch (error) {
      this.#fault(error);
    }
  }

  /** A fault in what serves this stream: it ends this stream, not the others, and not the process. */
  #fault(error: unknown): void {
    this.reset(ErrorCode.internalError);
    this.#carrier.faulted(error);
  }

  #enqueue(piece: Uint8Array): void {
    const rest = this.#queuedBytes > 0 ? piece : this.#sendNow(piece);
    const bytes = rest.byteLength;
    if (bytes === 0) return;
    if (this.#queue === none) this.#queue = [rest];
    else this.#queue.push(rest);
    this.#queuedBytes += bytes;
    if (!this.#carrier.sendFlow.wait(this, bytes)) this.reset(ErrorCode.enhanceYourCalm);
  }

  /** Sends what the windows and the socket take at once, which is nearly always all. @returns what is left */
  #sendNow(piece: Uint8Array): Uint8Array {
    let rest = piece;
    while (rest.byteLength > 0) {
      const allowed = this.#carrier.sendFlow.allowance(this);
      if (allowed <= 0) return rest;
      if (rest.byteLength <= allowed) {
        this.#sendPart(rest, true);
        return noBytes;
      }
      this.#sendPart(rest.subarray(0, allowed), false);
      rest = rest.subarray(allowed);
    }
    return rest;
  }

  #sendPart(part: Uint8Array, emptiesQueue: boolean): void {
    this.#carrier.sendFlow.spend(this, part.byteLength);
    const last = emptiesQueue && this.#ending === none;
    this.#carrier.sendData(this.id, last, part);
    if (!last) return;
    this.#ending = undefined;
    this.#end();
  }

  #sendEnding(): void {
    const ending = this.#ending;
    this.#ending = undefined;
    if (ending === undefined || this.closed) return;
    if (ending === none) this.#carrier.sendData(this.id, true, noBytes);
    else this.#carrier.sendHeaders(this.id, true, ending);
    this.#end();
  }

  #end(): void {
    this.localEnded = true;
    this.#carrier.ended(this);
  }
}

const none: Uint8Array[] = [];
const noBytes = new Uint8Array(0);
