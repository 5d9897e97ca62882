import { ErrorCode, minFreedBytes, type IncomingBody, maxUnreadBodyBytes } from "../../http/index.ts";
import { encodeStatus } from "./hpack/encoder.ts";
import type { Http2RequestHead } from "./request-head.ts";
import { type FlowConnection, type FlowReceiver, StreamFlow } from "./stream-flow.ts";

/**
 * Receives a stream's events until the complete response is sent or queued. If a method throws, only this stream is
 * reset, with INTERNAL_ERROR.
 */
export interface StreamReceiver extends FlowReceiver {
  /**
   * Receives pieces of the body, which are views into chunks. A kept piece keeps its whole chunk in memory. The
   * receiver must call `stream.consumed(bytes)` after using a piece.
   */
  readonly body: IncomingBody | undefined;
}

/** The connection members that {@link Http2Stream} uses. */
export interface ServerStreamConnection extends FlowConnection {
  /** Records that a receiver has kept the current chunk, so that the chunk must not be freed. */
  keepChunk(): void;
  /** Called when a response is complete although the client has not sent END_STREAM. */
  startLingering(): void;
}

/** Serves a stream after its header has arrived. The stream does not keep the header, to save memory. */
export type ServeStream = (stream: Http2Stream, head: Http2RequestHead) => void;

interface StreamInit {
  readonly contentLength: number | undefined;
  /** Whether the request has no body. */
  readonly endStream: boolean;
  /** Whether the client waits for 100 Continue before sending the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  readonly sendWindow: number;
  readonly nowMs: number;
}

/**
 * A server stream: one request and its response. The code that serves the stream sets the receiver. The stream drops
 * the receiver when the response ends. Times are integer `performance.now()` milliseconds, because V8 allocates a heap
 * number for each fraction.
 */
export class Http2Stream extends StreamFlow<StreamReceiver> {
  readonly openedAtMs: number;
  /** Whether the head of the final response was sent, and the response may continue. */
  headSent = false;
  /** Time when the response ended before the request, otherwise 0. */
  respondedAtMs = 0;
  readonly #connection: ServerStreamConnection;
  readonly #contentLength: number | undefined;
  /** Whether the client waits for 100 Continue or the response before sending the body. */
  #awaitsContinue: boolean;
  /** Number of received body bytes. `#droppedBytes` counts the bytes that were dropped after a complete response. */
  #receivedBytes = 0;
  #droppedBytes = 0;

  constructor(connection: ServerStreamConnection, id: number, init: StreamInit) {
    const { contentLength, endStream, expectsContinue, sendWindow, nowMs } = init;
    super(connection, id, sendWindow, endStream);
    this.openedAtMs = nowMs;
    this.#connection = connection;
    this.#contentLength = contentLength;
    this.#awaitsContinue = expectsContinue;
  }

  /** Sends 100 Continue if the client waits for this response before sending a body (RFC 9110 §10.1.1). */
  startBody(): void {
    if (this.#awaitsContinue) this.sendHeaders(continueBlocks, false);
  }

  /** Sends the header section of an informational or final response. Throws like {@link respond}. */
  sendHeaders(parts: readonly Uint8Array[], endStream: boolean): void {
    if (this.closed || this.localEnded) return;
    this.#requireBlockSize(parts);
    this.#awaitsContinue = false;
    this.headSent = parts !== continueBlocks;
    this.#connection.output.headerBlock(this.id, endStream, parts);
    if (endStream) this.onEndStreamSent();
  }

  /**
   * Sends a complete response: the header section, and the body and trailer section if any. Ends our side.
   *
   * @throws RangeError for a section after which the client may close the connection, before anything is sent
   */
  respond(parts: readonly Uint8Array[], body: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    if (this.closed || this.localEnded) return;
    this.#requireBlockSize(parts);
    if (trailer !== undefined) this.#requireBlockSize([trailer]);
    const { output, sendFlow } = this.#connection;
    // Nearly every response body fits into one frame that the windows allow.
    // Equivalent mutant: `sendHeaders` and `end` would send the same bytes.
    if (body === undefined || sendFlow.takeAll(this, body.byteLength)) {
      output.respond(this.id, parts, body, trailer);
      this.hasFixedWindow = trailer !== undefined;
      return this.onEndStreamSent();
    }
    this.sendHeaders(parts, false);
    this.end(body, trailer);
  }

  /** Ends our side after the queued bytes. See {@link endLocalSide}. Throws like {@link respond}. */
  end(piece: Uint8Array | undefined, trailer: Uint8Array | undefined): void {
    if (this.closed || this.localEnded) return;
    if (trailer !== undefined) this.#requireBlockSize([trailer]);
    this.hasFixedWindow = trailer !== undefined;
    this.#endReceiving();
    this.endLocalSide(piece, trailer);
  }

  begin(serve: ServeStream, head: Http2RequestHead): void {
    try {
      serve(this, head);
    } catch (error) {
      this.fault(error);
    }
  }

  /**
   * Handles a DATA frame of `length` bytes including padding, or the trailer section.
   *
   * @returns an error code if the frame is invalid and was not passed to the receiver
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
      } else if (this.receiver?.body?.onData(piece, last) === true && piece.buffer.byteLength >= minFreedBytes)
        this.#connection.keepChunk();
    } catch (error) {
      // The receiver may have kept the piece before throwing.
      this.#connection.keepChunk();
      this.fault(error);
    }
    return undefined;
  }

  protected onEndStreamSent(): void {
    if (!this.localEnded) this.#endReceiving();
    if (this.remoteEnded) return this.close();
    this.respondedAtMs = Math.trunc(performance.now());
    this.#connection.startLingering();
  }

  #drop(bytes: number): void {
    this.consumed(bytes);
    if (this.respondedAtMs === 0) return;
    if (this.remoteEnded) this.close();
    // After a complete response, a server may reset the stream with NO_ERROR (RFC 9113 §8.1).
    else if ((this.#droppedBytes += bytes) > maxUnreadBodyBytes) this.reset(ErrorCode.noError);
  }

  #requireBlockSize(parts: readonly Uint8Array[]): void {
    const { maxBlockBytes } = this.#connection.output;
    let bytes = 0;
    for (const part of parts) bytes += part.byteLength;
    if (bytes <= maxBlockBytes) return;
    throw new RangeError(`a header or trailer section must have at most ${maxBlockBytes} bytes, got ${bytes}`);
  }

  /** Drops the receiver, which keeps the request in memory, and the unused rest of the body. */
  #endReceiving(): void {
    this.localEnded = true;
    this.receiver = undefined;
    if (this.heldBytes > 0) this.consumed(this.heldBytes);
  }

  // A request is malformed if its body's length differs from the Content-Length (§8.1.1).
  #isLengthPossible(last: boolean): boolean {
    if (this.#contentLength === undefined) return true;
    return last ? this.#receivedBytes === this.#contentLength : this.#receivedBytes <= this.#contentLength;
  }
}

const continueBlocks: readonly Uint8Array[] = [encodeStatus(100)];
