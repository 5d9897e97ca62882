import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { CollectedBytes, type HeaderFields, noBytes, detachFromChunk } from "@protoport/gateway/exchange";
import type { ClientStream } from "@protoport/gateway/http2-client";
import {
  envelopeBytes,
  envelopePrefixBytes,
  isLargeEnvelope,
  LazyHeaders,
  readSingleEnvelope,
} from "@protoport/gateway/forward";
import { responseError } from "./call-status.ts";
import { type CallInit, OutgoingCall } from "./outgoing-call.ts";
import { ResponseMessages } from "./response-messages.ts";

/** A unary call's response. */
export interface UnaryCallResponse {
  readonly header: Headers;
  readonly message: Message;
  readonly trailer: Headers;
}

/** A call with one request message and one response message. */
export abstract class OutgoingUnary<T> extends OutgoingCall<T> {
  readonly #request: Uint8Array;
  /** The response body's first chunk, which is usually the entire body. */
  #first: Uint8Array = noBytes;
  #collected: CollectedBytes | undefined;
  /** The response message's chunks, if the message is streamed. */
  #parts: ResponseMessages | undefined;

  constructor(init: CallInit<T>, request: Uint8Array) {
    super(init);
    this.#request = request;
  }

  /** Called once when the call has succeeded. */
  protected abstract succeeded(message: T, trailer: HeaderFields): void;

  /** Called once when the status is OK, but the message is missing or invalid. */
  protected abstract rejected(error: ConnectError): void;

  /** Called instead of {@link succeeded} to stream a large message. The iterator throws if the call fails. */
  protected receivedLarge(_parts: AsyncIterable<T>): void {}

  /** Ends a streamed message with the call's error. @returns `false` if the message is not streamed */
  protected failParts(error: ConnectError, isComplete: boolean): boolean {
    if (isComplete) this.#parts?.end(error);
    else this.#parts?.fail(error);
    return this.#parts !== undefined;
  }

  protected get isRepeatable(): boolean {
    return true;
  }

  protected send(stream: ClientStream): void {
    stream.end(this.#request);
  }

  onWritable(): void {}

  onData(piece: Uint8Array): void {
    if (this.#parts !== undefined) return this.#parts.onData(piece);
    const isStart = this.#collected === undefined && this.#first.byteLength === 0;
    const limitBytes = envelopePrefixBytes + this.method.settings.readMaxBytes;
    const announcedBytes = isStart ? envelopeBytes(piece) : 0;
    if (Math.max(piece.byteLength, announcedBytes) > limitBytes) return this.#failTooLarge();
    if (isStart && this.streamsLargeResponses && isLargeEnvelope(piece)) return this.#startParts(piece);
    this.stream?.consumed(piece.byteLength);
    if (isStart) {
      if (piece.byteLength >= announcedBytes) {
        this.#first = detachFromChunk(piece, this.method.memory);
        return; // equivalent mutant: without this return, the chunk is copied once more.
      }
      this.#collected = new CollectedBytes(announcedBytes, limitBytes);
    }
    const collected = (this.#collected ??= this.#collect(limitBytes));
    if (collected.byteLength + piece.byteLength > limitBytes) this.#failTooLarge();
    else collected.add(piece);
  }

  #startParts(piece: Uint8Array): void {
    this.#parts = new ResponseMessages((bytes) => this.stream?.consumed(bytes));
    this.#parts.onData(piece);
    this.receivedLarge(this.readResponse(this.#parts));
  }

  protected completed(trailer: HeaderFields): ConnectError | undefined {
    if (this.#parts !== undefined) {
      this.#parts.end(undefined);
      return undefined;
    }
    try {
      const body = this.#collected?.bytes ?? this.#first;
      const message = this.method.open(readSingleEnvelope(body, this.method.settings.readMaxBytes), this.coding);
      if (message instanceof Promise)
        message.then(
          (opened) => this.succeeded(opened, trailer),
          (error: ConnectError) => this.rejected(this.malformedError(error)),
        );
      else this.succeeded(message, trailer);
      return undefined;
    } catch (thrown) {
      const error = responseError(thrown);
      this.rejected(this.malformedError(error));
      return error;
    }
  }

  #collect(limitBytes: number): CollectedBytes {
    // equivalent mutant: another initial size costs only memory or one more copy.
    const collected = new CollectedBytes(envelopeBytes(this.#first), limitBytes);
    collected.add(this.#first);
    return collected;
  }

  #failTooLarge(): void {
    const { readMaxBytes } = this.method.settings;
    this.fail(new ConnectError(`the response is larger than ${readMaxBytes} bytes`, Code.ResourceExhausted));
  }
}

/** A transport's unary call that settles a promise. */
export class PromisedCall extends OutgoingUnary<Message> {
  readonly #resolve: (response: UnaryCallResponse) => void;
  readonly #reject: (error: ConnectError) => void;

  constructor(
    init: CallInit<Message>,
    request: Uint8Array,
    resolve: (response: UnaryCallResponse) => void,
    reject: (error: ConnectError) => void,
  ) {
    super(init, request);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  protected succeeded(message: Message, trailer: HeaderFields): void {
    this.#resolve({ header: new LazyHeaders(this.head ?? []), message, trailer: new LazyHeaders(trailer) });
  }

  protected rejected(error: ConnectError): void {
    this.#reject(error);
  }

  protected failed(error: ConnectError): void {
    this.#reject(error);
  }
}
