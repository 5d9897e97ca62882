import { type BodySource, ErrorCode, noBytes, copyIfPooled } from "../../http/index.ts";
import { FrameFlag, FrameType, windowBytesInitial } from "./frame-numbers.ts";
import type { Output } from "./output.ts";
import type { ReceiveFlow, SendFlow, SendingStream } from "./flow-control.ts";

/** Receives a stream's events. If a method throws, only this stream is reset, with INTERNAL_ERROR. */
export interface FlowReceiver {
  /** Called when the peer or we have reset the stream. `code` is the HTTP/2 error code. */
  onReset(code: number, byPeer: boolean): void;
  /** Called when the stream's send queue is empty. */
  onWritable(): void;
}

/** The connection members that {@link StreamFlow} uses. */
export interface FlowConnection {
  readonly output: Output;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  sendReset(streamId: number, code: ErrorCode): void;
  forget(streamId: number): void;
  reportFault(error: unknown): void;
}

/**
 * Base class for client and server streams, with the state (RFC 9113 §5.1), the windows and the queue.
 *
 * A stream is a small object instead of a Duplex. Bodies are views into received chunks, and are sent without copying.
 * The fields are public because getters would be slower. Code outside this class and its subclasses writes a field only
 * if the field's comment allows this.
 */
export abstract class StreamFlow<Receiver extends FlowReceiver> implements SendingStream, BodySource {
  readonly id: number;
  /** The receiver of the stream's events. The code that uses the stream sets this field. */
  receiver: Receiver | undefined;
  remoteEnded: boolean;
  /** Whether we have sent END_STREAM or queued the stream's end. */
  localEnded = false;
  /** Whether the stream is closed, so that neither side may send. */
  closed = false;
  queuedBytes = 0;
  sendWindow: number;
  /** Number of received bytes that are not consumed yet, including padding. */
  protected heldBytes = 0;
  /** Whether the stream gets no WINDOW_UPDATE. It would complete a blocked write of grpc-js, whose next write fails. */
  protected hasFixedWindow = false;
  readonly #connection: FlowConnection;
  #receiveWindow: number;
  /** Number of consumed bytes for which no WINDOW_UPDATE was sent. */
  #uncreditedBytes = 0;
  /** Queued pieces of the body. `undefined` for the many streams that send the body immediately. */
  #queue: Uint8Array[] | undefined;
  /** The trailer block to send after the queue, or "data" to end with the last DATA frame. `undefined` while open. */
  #ending: "data" | Uint8Array | undefined;

  constructor(connection: FlowConnection, id: number, sendWindow: number, remoteEnded: boolean) {
    this.#connection = connection;
    this.id = id;
    this.remoteEnded = remoteEnded;
    this.sendWindow = sendWindow;
    // Before the peer has applied our SETTINGS, the peer may use the initial window.
    this.#receiveWindow = Math.max(connection.receiveFlow.streamWindowBytes, windowBytesInitial);
  }

  abstract startBody(): void;

  /** Called when END_STREAM was passed to the output. */
  protected abstract onEndStreamSent(): void;

  /** Sends a piece of the body. Bytes that the windows do not allow are queued. */
  sendData(piece: Uint8Array): void {
    if (!this.closed && !this.localEnded && piece.byteLength > 0) this.#enqueue(piece);
  }

  reset(code: ErrorCode): void {
    if (this.closed) return;
    this.#connection.sendReset(this.id, code);
    this.#end(code, false);
  }

  /** Called when the receiver has used `bytes` bytes of the body. Allows the peer to send as many further bytes. */
  consumed(bytes: number): void {
    const { receiveFlow, output } = this.#connection;
    // When a stream closes, its held bytes are credited and must not be credited again.
    const used = Math.min(bytes, this.heldBytes);
    this.heldBytes -= used;
    receiveFlow.credit(used);
    this.#uncreditedBytes += used;
    if (this.remoteEnded || this.hasFixedWindow) return;
    if (this.#uncreditedBytes < receiveFlow.streamWindowBytes / 2) return;
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

  /** Closes a stream that the peer has reset. Drops the queue and calls the receiver for the last time. */
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
   * Ends our side after the queued bytes.
   *
   * @param piece - the last piece of the body
   * @param trailer - the encoded trailer section, or `undefined` to end the stream with a DATA frame
   */
  protected endLocalSide(piece: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    this.localEnded = true;
    this.#ending = trailer ?? "data";
    if (piece !== undefined && piece.byteLength > 0) this.#enqueue(piece);
    if (this.queuedBytes === 0) this.#sendEnding();
    else if (trailer !== undefined) this.#ending = copyIfPooled(trailer);
  }

  /**
   * Counts a DATA frame that has `length` bytes including padding, and `bytes` without padding.
   *
   * @returns whether the receive window allowed the frame
   */
  protected countReceived(bytes: number, length: number): boolean {
    this.heldBytes += length;
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return false;
    // Padding counts for flow control. The padding is consumed immediately.
    if (bytes < length) this.consumed(length - bytes);
    return true;
  }

  /** Calls the receiver unless the receiver was dropped. If the receiver throws, the stream is reset. */
  protected notify(call: (receiver: Receiver) => void): void {
    try {
      if (this.receiver !== undefined) call(this.receiver);
    } catch (error) {
      this.fault(error);
    }
  }

  /** Resets only this stream, because the stream's receiver has thrown. */
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

  /** Sends as many bytes as the windows and the socket allow. @returns the rest, which is nearly always empty */
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
    this.onEndStreamSent();
  }

  #sendEnding(): void {
    const ending = this.#ending;
    this.#ending = undefined;
    if (ending === undefined || this.closed) return;
    if (ending === "data") this.#connection.output.frame(FrameType.data, FrameFlag.endStream, this.id, noBytes);
    else this.#connection.output.headerBlock(this.id, true, [ending]);
    this.onEndStreamSent();
  }
}
