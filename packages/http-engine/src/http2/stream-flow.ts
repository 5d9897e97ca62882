import { type BodySource, ErrorCode, noBytes, unpooled } from "@plantstore/gateway/exchange";
import { FrameFlag, FrameType, windowBytesInitial } from "./frame-numbers.ts";
import type { Output } from "./output.ts";
import type { ReceiveFlow } from "./receive-flow.ts";
import type { SendFlow, SendingStream } from "./send-flow.ts";

/** Receives what happens on a stream. If a method throws, the stream ends with INTERNAL_ERROR; other streams go on. */
export interface FlowReceiver {
  /** Called when the stream was reset with this code, by the peer or else by us. */
  onReset(code: number, byPeer: boolean): void;
  /** Called when nothing is queued any more, as far as flow control is concerned. */
  onWritable(): void;
}

/** The part of a connection that its streams use. */
export interface FlowConnection {
  readonly output: Output;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  /** Sends RST_STREAM. */
  sendReset(streamId: number, code: ErrorCode): void;
  /** Drops a stream that is closed. */
  forget(streamId: number): void;
  /** Reports that a receiver has thrown. */
  reportFault(error: unknown): void;
}

/**
 * What both sides' streams have in common: the state (RFC 9113 §5.1), the windows, and what waits to be sent.
 *
 * A small record, not a Duplex. Bodies are pieces of the chunks that arrived, and are sent as given. The fields are
 * plain because getters would cost their callers more; only this class and its side's write them, unless a comment says
 * otherwise.
 */
export abstract class StreamFlow<Receiver extends FlowReceiver> implements SendingStream, BodySource {
  readonly id: number;
  /** Set by the code that uses the stream. */
  receiver: Receiver | undefined;
  /** Whether the peer has ended its side. */
  remoteEnded: boolean;
  /** Whether we have ended our side, or queued everything that ends it. */
  localEnded = false;
  /** Whether neither side may send any more. */
  closed = false;
  queuedBytes = 0;
  sendWindow: number;
  /** Bytes received, with padding, that are not used yet. */
  protected heldBytes = 0;
  readonly #carrier: FlowConnection;
  #receiveWindow: number;
  /** Bytes used for which the peer has not been given new credit. */
  #uncreditedBytes = 0;
  /** Pieces of body that wait to be sent; not made for the many streams whose body is sent at once. */
  #queue: Uint8Array[] | undefined;
  /** What ends the stream after the queue: its last DATA frame, or this trailer block; `undefined` as long as it goes on. */
  #ending: "data" | Uint8Array | undefined;

  constructor(carrier: FlowConnection, id: number, sendWindow: number, remoteEnded: boolean) {
    this.#carrier = carrier;
    this.id = id;
    this.remoteEnded = remoteEnded;
    this.sendWindow = sendWindow;
    // Until our settings are acknowledged, the peer may assume the initial value.
    this.#receiveWindow = Math.max(carrier.receiveFlow.streamWindowBytes, windowBytesInitial);
  }

  abstract startBody(): void;

  /** Called when what ends our side is on its way. */
  protected abstract sideEnded(): void;

  /** Sends a piece of the body; what the windows do not admit is queued. */
  sendData(piece: Uint8Array): void {
    if (!this.closed && !this.localEnded && piece.byteLength > 0) this.#enqueue(piece);
  }

  reset(code: ErrorCode): void {
    if (this.closed) return;
    this.#carrier.sendReset(this.id, code);
    this.#end(code, false);
  }

  /** Notes that the receiver has used `bytes` of the body, so that the peer may send as many more. */
  consumed(bytes: number): void {
    const { receiveFlow, output } = this.#carrier;
    // What was held when the stream closed has been given back already.
    const used = Math.min(bytes, this.heldBytes);
    this.heldBytes -= used;
    receiveFlow.credit(used);
    this.#uncreditedBytes += used;
    if (this.remoteEnded || this.#uncreditedBytes < receiveFlow.streamWindowBytes / 2) return;
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
    else this.notify((receiver) => receiver.onWritable());
  }

  /** Ends a stream that the peer has reset: drops its queue and calls the receiver for the last time. */
  receiveReset(code: number): void {
    this.#end(code, true);
  }

  #end(code: number, byPeer: boolean): void {
    const { receiver } = this;
    this.receiver = undefined;
    this.close();
    if (this.queuedBytes > 0) this.#carrier.sendFlow.release(this, this.queuedBytes, true);
    this.#queue = undefined;
    this.queuedBytes = 0;
    this.#ending = undefined;
    try {
      receiver?.onReset(code, byPeer);
    } catch (error) {
      this.fault(error);
    }
  }

  /**
   * Ends our side, after everything that is queued.
   *
   * @param piece - the last piece of the body
   * @param trailer - the header block of the trailer section; without one the last DATA frame ends the stream
   */
  protected endSide(piece: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    this.localEnded = true;
    this.#ending = trailer ?? "data";
    if (piece !== undefined && piece.byteLength > 0) this.#enqueue(piece);
    if (this.queuedBytes === 0) this.#sendEnding();
    else if (trailer !== undefined) this.#ending = unpooled(trailer);
  }

  /**
   * Counts a DATA frame, of `length` bytes with its padding and `bytes` without it.
   *
   * @returns whether the peer was allowed to send it
   */
  protected countReceived(bytes: number, length: number): boolean {
    this.heldBytes += length;
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return false;
    // Padding counts for flow control, and is used as soon as it arrives.
    if (bytes < length) this.consumed(length - bytes);
    return true;
  }

  /** Calls the receiver, unless it was dropped. If it throws, this stream ends. */
  protected notify(call: (receiver: Receiver) => void): void {
    try {
      if (this.receiver !== undefined) call(this.receiver);
    } catch (error) {
      this.fault(error);
    }
  }

  /** Ends this stream, and nothing else, because its receiver has thrown. */
  protected fault(error: unknown): void {
    this.reset(ErrorCode.internalError);
    this.#carrier.reportFault(error);
  }

  protected close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.heldBytes > 0) this.#carrier.receiveFlow.credit(this.heldBytes);
    this.heldBytes = 0;
    this.#carrier.forget(this.id);
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
    this.sideEnded();
  }

  #sendEnding(): void {
    const ending = this.#ending;
    this.#ending = undefined;
    if (ending === undefined || this.closed) return;
    if (ending === "data") this.#carrier.output.frame(FrameType.data, FrameFlag.endStream, this.id, noBytes);
    else this.#carrier.output.headerBlock(this.id, true, [ending]);
    this.sideEnded();
  }
}
