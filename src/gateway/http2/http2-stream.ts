import {
  type BodySource,
  freedBytesMin,
  type IncomingBody,
  noBytes,
  unpooled,
  unreadBodyBytesMax,
} from "../carriers/index.ts";
import { FrameFlag, FrameType, windowBytesInitial } from "./frame-numbers.ts";
import { encodeStatus } from "./hpack/encoder.ts";
import { ErrorCode } from "./http2-error.ts";
import type { Output } from "./output.ts";
import type { Http2RequestHead } from "./request-head.ts";
import type { ReceiveFlow } from "./receive-flow.ts";
import type { SendFlow, SendingStream } from "./send-flow.ts";

/**
 * Receives what happens on a stream until its answer is complete, or handed over to be sent as the windows allow. If a
 * method throws, the stream ends with INTERNAL_ERROR; other streams go on.
 */
export interface StreamReceiver {
  /**
   * Gets the pieces of the body: views of their chunks, which may be kept, but keep the whole chunk alive. Calls
   * `stream.consumed(bytes)` once they are used.
   */
  readonly body: IncomingBody | undefined;
  /** Called when the stream was reset with this code, by the peer or by us. */
  onReset(code: number): void;
  /** Called when nothing is queued any more, as far as flow control is concerned. */
  onWritable(): void;
}

/** The part of a connection that its streams use. */
export interface StreamCarrier {
  readonly output: Output;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  /** Sends RST_STREAM. */
  sendReset(stream: Http2Stream, code: ErrorCode): void;
  /** Notes that a view of the chunk being read is kept. Called only for chunks that may be freed. */
  keepChunk(): void;
  /** Notes that a stream is answered although its peer has not ended its side. */
  lingers(): void;
  /** Drops a stream that is closed. */
  forget(stream: Http2Stream): void;
  /** Reports that a receiver has thrown. */
  faulted(error: unknown): void;
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
 * One request and its answer: the state of a stream (RFC 9113 §5.1), what is unread, and what waits to be sent.
 *
 * A small record, not a Duplex. Bodies are pieces of the chunks that arrived, and are sent as given. The fields are
 * plain because getters would cost their callers more; only this class writes them, unless a comment says otherwise.
 * Times are whole milliseconds of `performance.now()`: V8 keeps each fraction in an object of its own.
 */
export class Http2Stream implements SendingStream, BodySource {
  readonly id: number;
  readonly openedAtMs: number;
  /** Set by the code that serves the stream, and dropped when our side ends. */
  receiver: StreamReceiver | undefined;
  /** Whether the peer has ended its side. */
  remoteEnded: boolean;
  /** Whether we have ended our side, or queued everything that ends it. */
  localEnded = false;
  /** When we ended our side before the peer ended its own; 0 before that. */
  answeredAtMs = 0;
  /** Whether neither side may send any more. */
  closed = false;
  queuedBytes = 0;
  sendWindow: number;
  readonly #carrier: StreamCarrier;
  readonly #contentLength: number | undefined;
  /** Whether the peer waits for a header section: a 100, or that of the answer. */
  #awaitsContinue: boolean;
  #receiveWindow: number;
  /** Bytes of body received, and how many of them were to be dropped because our side had ended. */
  #receivedBytes = 0;
  #droppedBytes = 0;
  /** Bytes received, with padding, that are not used yet. */
  #heldBytes = 0;
  /** Bytes used for which the peer has not been given new credit. */
  #uncreditedBytes = 0;
  /** Pieces of body that wait to be sent; not made for the many streams whose body is sent at once. */
  #queue: Uint8Array[] | undefined;
  /** What ends the stream after the queue: its last DATA frame, or this trailer block; `undefined` as long as it goes on. */
  #ending: "data" | Uint8Array | undefined;

  constructor(carrier: StreamCarrier, id: number, init: StreamInit) {
    const { contentLength, ended, expectsContinue, sendWindow, nowMs } = init;
    this.#carrier = carrier;
    this.id = id;
    this.#contentLength = contentLength;
    this.remoteEnded = ended;
    this.#awaitsContinue = expectsContinue;
    this.sendWindow = sendWindow;
    // Until our settings are acknowledged, the peer may assume the initial value.
    this.#receiveWindow = Math.max(carrier.receiveFlow.streamWindowBytes, windowBytesInitial);
    this.openedAtMs = nowMs;
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
    if (endStream) this.#end();
  }

  /** Sends the header section of the answer, then body and trailer section if there are any, and ends our side. */
  answer(parts: readonly Uint8Array[], body: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    if (this.closed || this.localEnded) return;
    const { output, sendFlow } = this.#carrier;
    // Nearly every answer fits into one frame that may be sent now.
    if (body === undefined || sendFlow.takeAll(this, body.byteLength)) {
      output.answer(this.id, parts, body, trailer);
      return this.#end();
    }
    this.sendHeaders(parts, false);
    this.end(body, trailer);
  }

  /** Sends a piece of the body; what the windows do not admit is queued. */
  sendData(piece: Uint8Array): void {
    if (!this.closed && !this.localEnded && piece.byteLength > 0) this.#enqueue(piece);
  }

  /**
   * Ends our side, after everything that is queued.
   *
   * @param piece - the last piece of the body
   * @param trailer - the header block of the trailer section; without one the last DATA frame ends the stream
   */
  end(piece: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    if (this.closed || this.localEnded) return;
    this.#endReceiving();
    this.#ending = trailer ?? "data";
    if (piece !== undefined && piece.byteLength > 0) this.#enqueue(piece);
    if (this.queuedBytes === 0) this.#sendEnding();
    else if (trailer !== undefined) this.#ending = unpooled(trailer);
  }

  reset(code: ErrorCode): void {
    if (this.closed) return;
    this.#carrier.sendReset(this, code);
    this.receiveReset(code);
  }

  /** Notes that the receiver has used `bytes` of the body, so that the peer may send as many more. */
  consumed(bytes: number): void {
    const { receiveFlow, output } = this.#carrier;
    // What was held when the stream closed has been given back already.
    const used = Math.min(bytes, this.#heldBytes);
    this.#heldBytes -= used;
    receiveFlow.credit(used);
    if (this.closed || this.remoteEnded) return;
    this.#uncreditedBytes += used;
    if (this.#uncreditedBytes < receiveFlow.streamWindowBytes / 2) return;
    output.numbers(FrameType.windowUpdate, this.id, this.#uncreditedBytes);
    this.#receiveWindow += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }

  sendNext(): void {
    const queue = this.#queue ?? [];
    const [piece] = queue;
    if (piece === undefined) return;
    const bytes = this.#carrier.sendFlow.take(this, piece.byteLength);
    if (bytes === piece.byteLength) queue.shift();
    else queue[0] = piece.subarray(bytes);
    this.queuedBytes -= bytes;
    this.#carrier.sendFlow.release(this, bytes, this.queuedBytes === 0);
    this.#sendPart(piece.subarray(0, bytes), this.queuedBytes === 0);
    if (bytes === piece.byteLength) this.#carrier.output.sent(piece);
    if (this.queuedBytes > 0 || this.closed) return;
    if (this.localEnded) this.#sendEnding();
    else this.#tellWritable();
  }

  /** Hands the stream to the code that serves it. */
  begin(serve: ServeStream, head: Http2RequestHead, headTooLarge: boolean): void {
    try {
      serve(this, head, headTooLarge);
    } catch (error) {
      this.#fault(error);
    }
  }

  /**
   * Takes a DATA frame, of `length` bytes with its padding, or the trailer section.
   *
   * @returns the error in it, in which case nothing is passed on
   */
  receive(piece: Uint8Array, length: number, last: boolean): ErrorCode | undefined {
    const bytes = piece.byteLength;
    this.#heldBytes += length;
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return ErrorCode.flowControlError;
    // Padding counts for flow control, and is used as soon as it arrives.
    if (bytes < length) this.consumed(length - bytes);
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
      this.#fault(error);
    }
    return undefined;
  }

  /** Ends the stream: drops what waits and tells the receiver. */
  receiveReset(code: number): void {
    this.#close();
    if (this.queuedBytes > 0) this.#carrier.sendFlow.release(this, this.queuedBytes, true);
    this.#queue = undefined;
    this.queuedBytes = 0;
    this.#ending = undefined;
    try {
      this.receiver?.onReset(code);
    } catch (error) {
      this.#fault(error);
    }
  }

  /** Takes bytes that arrive after our end, until it is sent and they are too many. */
  #drop(bytes: number): void {
    this.consumed(bytes);
    this.#droppedBytes += bytes;
    if (this.answeredAtMs === 0) return;
    if (this.remoteEnded) this.#close();
    // RFC 9113 §8.1: after a complete answer the server may ask the client to stop sending.
    else if (this.#droppedBytes > unreadBodyBytesMax) this.reset(ErrorCode.noError);
  }

  #tellWritable(): void {
    try {
      this.receiver?.onWritable();
    } catch (error) {
      this.#fault(error);
    }
  }

  /** Ends this stream, and nothing else, because its receiver has thrown. */
  #fault(error: unknown): void {
    this.reset(ErrorCode.internalError);
    this.#carrier.faulted(error);
  }

  #enqueue(piece: Uint8Array): void {
    const rest = this.queuedBytes > 0 ? piece : this.#sendNow(piece);
    const bytes = rest.byteLength;
    if (bytes === 0) return;
    (this.#queue ??= []).push(unpooled(rest));
    this.queuedBytes += bytes;
    if (!this.#carrier.sendFlow.wait(this, bytes)) this.reset(ErrorCode.enhanceYourCalm);
  }

  /** Sends what the windows and the socket take now, which is nearly always everything. @returns what is left */
  #sendNow(piece: Uint8Array): Uint8Array {
    let rest = piece;
    while (rest.byteLength > 0) {
      const bytes = this.#carrier.sendFlow.take(this, rest.byteLength);
      if (bytes === 0) return rest;
      if (bytes === rest.byteLength) {
        this.#sendPart(rest, true);
        this.#carrier.output.sent(rest);
        return noBytes;
      }
      this.#sendPart(rest.subarray(0, bytes), false);
      rest = rest.subarray(bytes);
    }
    return rest;
  }

  #sendPart(part: Uint8Array, emptiesQueue: boolean): void {
    const last = emptiesQueue && this.#ending === "data";
    this.#carrier.output.frame(FrameType.data, last ? FrameFlag.endStream : 0, this.id, part);
    if (!last) return;
    this.#ending = undefined;
    this.#end();
  }

  #sendEnding(): void {
    const ending = this.#ending;
    this.#ending = undefined;
    if (ending === undefined || this.closed) return;
    if (ending === "data") this.#carrier.output.frame(FrameType.data, FrameFlag.endStream, this.id, noBytes);
    else this.#carrier.output.headerBlock(this.id, true, [ending]);
    this.#end();
  }

  /** Forgets the receiver, and with it the request, and drops what has arrived of the body and was not used. */
  #endReceiving(): void {
    this.localEnded = true;
    this.receiver = undefined;
    if (this.#heldBytes > 0) this.consumed(this.#heldBytes);
  }

  #end(): void {
    if (!this.localEnded) this.#endReceiving();
    if (this.remoteEnded) return this.#close();
    this.answeredAtMs = Math.trunc(performance.now());
    this.#carrier.lingers();
  }

  #close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.#heldBytes > 0) this.#carrier.receiveFlow.credit(this.#heldBytes);
    this.#heldBytes = 0;
    this.#carrier.forget(this);
  }

  /** Returns whether the body can have the announced length. Otherwise the request is malformed (§8.1.1). */
  #isLengthPossible(last: boolean): boolean {
    if (this.#contentLength === undefined) return true;
    return last ? this.#receivedBytes === this.#contentLength : this.#receivedBytes <= this.#contentLength;
  }
}

const continued: readonly Uint8Array[] = [encodeStatus(100)];
