import { ErrorCode } from "../../http/index.ts";
import { colon, isRegularField } from "./header-blocks.ts";
import { type FlowConnection, type FlowReceiver, StreamFlow } from "./stream-flow.ts";

/**
 * Receives the response to a request. No method is called after {@link onEnd}, `onReset`, or an `onHead` with
 * `endStream`. If a method throws, only this stream is reset, with INTERNAL_ERROR.
 */
export interface ResponseReceiver extends FlowReceiver {
  /** Called with the final header section. `endStream` is true if the response has no body and no trailer. */
  onHead(head: ResponseSection, endStream: boolean): void;
  /**
   * Called with a piece of the body, which is a view into a chunk. The receiver may only keep the result of
   * `detachFromChunk`, and must call `stream.consumed(bytes)` after using the piece.
   */
  onData(piece: Uint8Array): void;
  /** Called when the response ends. */
  onEnd(trailer: ResponseSection | undefined): void;
}

/** The reset code for receivers when the connection closes. The code is negative to differ from all HTTP/2 codes. */
export const connectionLost = -1;

/** The reset code for receivers when the connection closes because the server did not acknowledge a PING. */
export const serverUnresponsive = -2;

/** The reset code for a receiver when a section in the response is above the limit. */
export const sectionTooLarge = -3;

/** A client stream: one request and its response. */
export class ClientStream extends StreamFlow<ResponseReceiver> {
  readonly #connection: FlowConnection;
  #headReceived = false;
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

  /** Sends the request's header section, which consists of several encoded parts. */
  begin(parts: readonly Uint8Array[]): void {
    this.#connection.output.headerBlock(this.id, false, parts);
  }

  /** Sends END_STREAM after the queued bytes and this last piece. */
  end(piece: Uint8Array | undefined): void {
    if (!this.closed) this.endLocalSide(piece, undefined);
  }

  /** Does nothing, because a response body is always read. */
  startBody(): void {}

  receiveHead(head: ResponseSection, endStream: boolean): void {
    this.#headReceived = true;
    this.remoteEnded = endStream;
    this.notify((receiver) => receiver.onHead(head, endStream));
    if (endStream) this.#endResponse();
  }

  /**
   * Handles a DATA frame of `length` bytes including padding.
   *
   * @returns an error code if the frame is invalid and was not passed to the receiver
   */
  receive(piece: Uint8Array, length: number, last: boolean): ErrorCode | undefined {
    const bytes = piece.byteLength;
    // Counts invalid DATA too, so that resetting the stream returns the bytes to the connection's window.
    if (!this.countReceived(bytes, length)) return ErrorCode.flowControlError;
    if (!this.#headReceived) return ErrorCode.protocolError;
    if (bytes > 0) this.notify((receiver) => receiver.onData(piece));
    if (last) this.receiveEnd(undefined);
    return undefined;
  }

  /** Handles a header or trailer section above the size limit. Only this stream fails. */
  receiveTooLarge(endStream: boolean): void {
    this.notify((receiver) => receiver.onReset(sectionTooLarge, false));
    this.receiver = undefined;
    if (endStream && this.#endStreamSent) this.close();
    else this.reset(ErrorCode.cancel);
  }

  receiveEnd(trailer: ResponseSection | undefined): void {
    this.remoteEnded = true;
    this.notify((receiver) => receiver.onEnd(trailer));
    this.#endResponse();
  }

  protected onEndStreamSent(): void {
    this.#endStreamSent = true;
  }

  /** A request need not be completed after its complete response (RFC 9113 §8.1). */
  #endResponse(): void {
    this.receiver = undefined;
    if (this.#endStreamSent) this.close();
    else this.reset(ErrorCode.noError);
  }
}

/** A response's header or trailer section. Callers must not change the object, because responses may share it. */
export interface ResponseSection {
  /** All fields, including `:status`: name, value, name, value, … */
  readonly fields: readonly string[];
  /** The response status, or 0 in a trailer section, which has no `:status`. */
  readonly httpStatus: number;
}

/** Parses a response section (RFC 9113 §8.2, §8.3.2). Returns `undefined` if the section is malformed. */
export function readResponseSection(fields: readonly string[]): ResponseSection | undefined {
  let httpStatus = 0;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    if (name.charCodeAt(0) === colon) {
      // §8.3: a response has only the pseudo-header field :status, once and before the regular fields.
      if (i > 0 || name !== ":status" || !statusSyntax.test(value)) return undefined;
      httpStatus = Number(value);
    } else if (!isRegularField(name, value)) return undefined;
  }
  return { fields, httpStatus };
}

// A status has three digits (RFC 9110 §15). Statuses above 599 are invalid, but are handled as server errors.
const statusSyntax = /^[1-9][0-9]{2}$/;
