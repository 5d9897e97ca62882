import { ErrorCode, freedBytesMin, type IncomingBody, unreadBodyBytesMax } from "@plantstore/gateway/exchange";
import { encodeStatus } from "./hpack/encoder.ts";
import type { Http2RequestHead } from "./request-head.ts";
import { type FlowConnection, type FlowReceiver, StreamFlow } from "./stream-flow.ts";

/**
 * Receives what happens on a stream until its answer is complete, or handed over to be sent as the windows allow. If a
 * method throws, the stream ends with INTERNAL_ERROR; other streams go on.
 */
export interface StreamReceiver extends FlowReceiver {
  /**
   * Gets the pieces of the body: views of their chunks, which may be kept, but keep the whole chunk alive. Calls
   * `stream.consumed(bytes)` once they are used.
   */
  readonly body: IncomingBody | undefined;
}

/** The part of a connection that its streams use. */
export interface ServerStreamConnection extends FlowConnection {
  /** Notes that a view of the chunk being read is kept. Called only for chunks that may be freed. */
  keepChunk(): void;
  /** Notes that a stream is answered although its peer has not ended its side. */
  startLingering(): void;
}

/**
 * Serves a stream whose header has arrived.
 *
 * @param head - not kept by the stream, because an answer may wait for a window long after its call is over
 * @param headTooLarge - whether the header list exceeds the limit; the head then has only the fields that fit
 */
export type ServeStream = (stream: Http2Stream, head: Http2RequestHead, headTooLarge: boolean) => void;

/** Options of a new {@link Http2Stream}. */
export interface StreamInit {
  /** The length that the header announces; `undefined` if it announces none. */
  readonly contentLength: number | undefined;
  /** Whether the request has no body. */
  readonly ended: boolean;
  /** Whether the peer waits for a 100 before it sends the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  readonly sendWindow: number;
  readonly nowMs: number;
}

/**
 * One request and its answer: a stream of the server's. Its receiver, set by the code that serves it, is dropped when
 * our side ends. Times are whole milliseconds of `performance.now()`: V8 keeps each fraction in an object of its own.
 */
export class Http2Stream extends StreamFlow<StreamReceiver> {
  readonly openedAtMs: number;
  /** When we ended our side before the peer ended its own; 0 before that. */
  respondedAtMs = 0;
  readonly #carrier: ServerStreamConnection;
  readonly #contentLength: number | undefined;
  /** Whether the peer waits for a header section: a 100, or that of the answer. */
  #awaitsContinue: boolean;
  /** Bytes of body received, and how many of them were dropped behind a complete answer. */
  #receivedBytes = 0;
  #droppedBytes = 0;

  constructor(carrier: ServerStreamConnection, id: number, init: StreamInit) {
    const { contentLength, ended, expectsContinue, sendWindow, nowMs } = init;
    super(carrier, id, sendWindow, ended);
    this.openedAtMs = nowMs;
    this.#carrier = carrier;
    this.#contentLength = contentLength;
    this.#awaitsContinue = expectsContinue;
  }

  /** RFC 9110 §10.1.1: tells the peer to send the body, of which nothing has arrived, if it waits for that. */
  startBody(): void {
    if (this.#awaitsContinue) this.sendHeaders(continued, false);
  }

  /** Sends a header section: an informational one, or that of the answer. */
  sendHeaders(parts: readonly Uint8Array[], endStream: boolean): void {
    if (this.closed || this.localEnded) return;
    this.#awaitsContinue = false;
    this.#carrier.output.headerBlock(this.id, endStream, parts);
    if (endStream) this.sideEnded();
  }

  /** Sends the header section of the answer, then body and trailer section if there are any, and ends our side. */
  respond(parts: readonly Uint8Array[], body: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    if (this.closed || this.localEnded) return;
    const { output, sendFlow } = this.#carrier;
    // Nearly every answer fits into one frame that may be sent now. No test can tell: the long way sends the same bytes.
    if (body === undefined || sendFlow.takeAll(this, body.byteLength)) {
      output.respond(this.id, parts, body, trailer);
      return this.sideEnded();
    }
    this.sendHeaders(parts, false);
    this.end(body, trailer);
  }

  /** Ends our side, after everything that is queued, as {@link endSide} says. */
  end(piece: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    if (this.closed || this.localEnded) return;
    this.#endReceiving();
    this.endSide(piece, trailer);
  }

  /** Hands the stream to the code that serves it. */
  begin(serve: ServeStream, head: Http2RequestHead, headTooLarge: boolean): void {
    try {
      serve(this, head, headTooLarge);
    } catch (error) {
      this.fault(error);
    }
  }

  /**
   * Takes a DATA frame, of `length` bytes with its padding, or the trailer section.
   *
   * @returns the error in it, in which case nothing is passed on
   */
  receive(piece: Uint8Array, length: number, last: boolean): ErrorCode | undefined {
    const bytes = piece.byteLength;
    if (!this.countReceived(bytes, length)) return ErrorCode.flowControlError;
    this.#receivedBytes += bytes;
    if (!this.#isLengthPossible(last)) return ErrorCode.protocolError;
    this.remoteEnded = last;
    if (this.localEnded) {
      this.#drop(bytes);
      return undefined;
    }
    try {
      if (bytes === 0) {
        if (last) this.receiver?.body?.onEnd();
      } else if (this.receiver?.body?.onData(piece, last) === true && piece.buffer.byteLength >= freedBytesMin)
        this.#carrier.keepChunk();
    } catch (error) {
      // The receiver may have kept the piece before it threw.
      this.#carrier.keepChunk();
      this.fault(error);
    }
    return undefined;
  }

  protected sideEnded(): void {
    if (!this.localEnded) this.#endReceiving();
    if (this.remoteEnded) return this.close();
    this.respondedAtMs = Math.trunc(performance.now());
    this.#carrier.startLingering();
  }

  /** Takes bytes that arrive after our end, until it is sent and they are too many. */
  #drop(bytes: number): void {
    this.consumed(bytes);
    if (this.respondedAtMs === 0) return;
    if (this.remoteEnded) this.close();
    // RFC 9113 §8.1: after a complete answer the server may ask the client to stop sending.
    else if ((this.#droppedBytes += bytes) > unreadBodyBytesMax) this.reset(ErrorCode.noError);
  }

  /** Forgets the receiver, and with it the request, and drops what has arrived of the body and was not used. */
  #endReceiving(): void {
    this.localEnded = true;
    this.receiver = undefined;
    if (this.heldBytes > 0) this.consumed(this.heldBytes);
  }

  /** Returns whether the body can have the announced length. Otherwise the request is malformed (§8.1.1). */
  #isLengthPossible(last: boolean): boolean {
    if (this.#contentLength === undefined) return true;
    return last ? this.#receivedBytes === this.#contentLength : this.#receivedBytes <= this.#contentLength;
  }
}

const continued: readonly Uint8Array[] = [encodeStatus(100)];
