import { type BodySource, ErrorCode, noBytes, copyIfPooled } from "@plantstore/http";
import { FrameFlag, FrameType, windowBytesInitial } from "./frame-numbers.ts";
import type { Output } from "./output.ts";
import type { ReceiveFlow } from "./receive-flow.ts";
import type { SendFlow, SendingStream } from "./send-flow.ts";

/** Receives a stream's events. If a method throws, the stream is reset with INTERNAL_ERROR; others continue. */
export interface FlowReceiver {
  /** Called when the stream was reset with this code, by the peer or by us. */
  onReset(code: number, byPeer: boolean): void;
  /** Called when the queue is empty. */
  onWritable(): void;
}

/** What streams use of their connection. */
export interface FlowConnection {
  readonly output: Output;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  /** Sends RST_STREAM. */
  sendReset(streamId: number, code: ErrorCode): void;
  /** Removes a closed stream. */
  forget(streamId: number): void;
  /** Reports that a receiver has thrown. */
  reportFault(error: unknown): void;
}

/**
 * What client and server streams have in common: the state (RFC 9113 §5.1), the windows and the queue.
 *
 * A small object, not a Duplex. Bodies are pieces of the chunks that have arrived, and are sent without copying. The
 * fields are public because getters would be slower. Only this class and its subclasses write them, unless a comment
 * states otherwise.
 */
export abstract class StreamFlow<Receiver extends FlowReceiver> implements SendingStream, BodySource {
  readonly id: number;
  /** Set by the code that uses the stream. */
  receiver: Receiver | undefined;
  /** Whether the peer has ended its side. */
  remoteEnded: boolean;
  /** Whether we have ended our side, or queued its end. */
  localEnded = false;
  /** Whether neither side may send any more. */
  closed = false;
  queuedBytes = 0;
  sendWindow: number;
  /** Bytes received, including padding, that are not consumed yet. */
  protected heldBytes = 0;
  readonly #connection: FlowConnection;
  #receiveWindow: number;
  /** Consumed bytes for which no WINDOW_UPDATE was sent. */
  #uncreditedBytes = 0;
  /** Queued pieces of the body. Not allocated for the many streams whose body is sent immediately. */
  #queue: Uint8Array[] | undefined;
  /**
   * How the stream ends after the queue: with its last DATA frame, or this trailer block. `undefined` while it is open.
   */
  #ending: "data" | Uint8Array | undefined;

  constructor(connection: FlowConnection, id: number, sendWindow: number, remoteEnded: boolean) {
    this.#connection = connection;
    this.id = id;
    this.remoteEnded = remoteEnded;
    this.sendWindow = sendWindow;
    // Until it has applied our SETTINGS, the peer may assume the initial value.
    this.#receiveWindow = Math.max(connection.receiveFlow.streamWindowBytes, windowBytesInitial);
  }

  abstract startBody(): void;

  /** Called when END_STREAM was passed to the output. */
  protected abstract sideEnded(): void;

  /** Sends a piece of the body. What the windows do not allow is queued. */
  sendData(piece: Uint8Array): void {
    if (!this.closed && !this.localEnded && piece.byteLength > 0) this.#enqueue(piece);
  }

  reset(code: ErrorCode): void {
    if (this.closed) return;
    this.#connection.sendReset(this.id, code);
    this.#end(code, false);
  }

  /** Called when the receiver has used `bytes` bytes of the body, so that the peer may send as many more. */
  consumed(bytes: number): void {
    const { receiveFlow, output } = this.#connection;
    // The bytes that were held when the stream was closed have already been credited.
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
    const bytes = this.#connection.sendFlow.take(this, piece.byteLength);
    if (bytes === piece.byteLength) queue.shift();
    else queue[0] = piece.subarray(bytes);
    this.queuedBytes -= bytes;
    this.#connection.sendFlow.release(this, bytes, this.queuedBytes === 0);
    this.#sendPart(piece.subarray(0, bytes), this.queuedBytes === 0);
    if (bytes === piece.byteLength) this.#connection.output.sent(piece);
    if (this.queuedBytes > 0 || this.closed) return;
    if (this.localEnded) this.#sendEnding();
    else this.notify((receiver) => receiver.onWritable());
  }

  /** Closes a stream that the peer has reset: drops its queue and calls the receiver for the last time. */
  receiveReset(code: number): void {
    this.#end(code, true);
  }

  #end(code: number, byPeer: boolean): void {
    const { receiver } = this;
    this.receiver = undefined;
    this.close();
    if (this.queuedBytes > 0) this.#connection.sendFlow.release(this, this.queuedBytes, true);
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
   * Ends our side after the queue.
   *
   * @param piece - the last piece of the body
   * @param trailer - the trailer section's header block; without one the last DATA frame ends the stream
   */
  protected endSide(piece: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    this.localEnded = true;
    this.#ending = trailer ?? "data";
    if (piece !== undefined && piece.byteLength > 0) this.#enqueue(piece);
    if (this.queuedBytes === 0) this.#sendEnding();
    else if (trailer !== undefined) this.#ending = copyIfPooled(trailer);
  }

  /**
   * Counts a DATA frame that has `length` bytes including padding, and `bytes` without padding.
   *
   * @returns whether the peer was allowed to send it
   */
  protected countReceived(bytes: number, length: number): boolean {
    this.heldBytes += length;
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return false;
    // Padding counts for flow control, and is consumed immediately.
    if (bytes < length) this.consumed(length - bytes);
    return true;
  }

  /** Calls the receiver, unless it was dropped. If it throws, the stream is reset. */
  protected notify(call: (receiver: Receiver) => void): void {
    try {
      if (this.receiver !== undefined) call(this.receiver);
    } catch (error) {
      this.fault(error);
    }
  }

  /** Resets only this stream, because its receiver has thrown. */
  protected fault(error: unknown): void {
    this.reset(ErrorCode.internalError);
    this.#connection.reportFault(error);
  }

  protected close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.heldBytes > 0) this.#connection.receiveFlow.credit(this.heldBytes);
    this.heldBytes = 0;
    this.#connection.forget(this.id);
  }

  #enqueue(piece: Uint8Array): void {
    const unsent = this.queuedBytes > 0 ? piece : this.#sendNow(piece);
    const bytes = unsent.byteLength;
    if (bytes === 0) return;
    (this.#queue ??= []).push(copyIfPooled(unsent));
    this.queuedBytes += bytes;
    if (!this.#connection.sendFlow.enqueue(this, bytes)) this.reset(ErrorCode.enhanceYourCalm);
  }

  /** Sends what the windows and the socket allow, which is nearly always everything. @returns the rest */
  #sendNow(piece: Uint8Array): Uint8Array {
    let unsent = piece;
    while (unsent.byteLength > 0) {
      const bytes = this.#connection.sendFlow.take(this, unsent.byteLength);
      if (bytes === 0) return unsent;
      if (bytes === unsent.byteLength) {
        this.#sendPart(unsent, true);
        this.#connection.output.sent(unsent);
        return noBytes;
      }
      this.#sendPart(unsent.subarray(0, bytes), false);
      unsent = unsent.subarray(bytes);
    }
    return unsent;
  }

  #sendPart(part: Uint8Array, emptiesQueue: boolean): void {
    const last = emptiesQueue && this.#ending === "data";
    this.#connection.output.frame(FrameType.data, last ? FrameFlag.endStream : 0, this.id, part);
    if (!last) return;
    this.#ending = undefined;
    this.sideEnded();
  }

  #sendEnding(): void {
    const ending = this.#ending;
    this.#ending = undefined;
    if (ending === undefined || this.closed) return;
    if (ending === "data") this.#connection.output.frame(FrameType.data, FrameFlag.endStream, this.id, noBytes);
    else this.#connection.output.headerBlock(this.id, true, [ending]);
    this.sideEnded();
  }
}
