import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { CollectedBytes, type HeaderFields, noBytes, detachFromChunk } from "@plantstore/gateway/exchange";
import type { ClientStream } from "@plantstore/http-engine/client";
import {
  envelopeBytes,
  envelopePrefixBytes,
  LazyHeaders,
  readSingleEnvelope,
} from "@plantstore/gateway/internal/protocols";
import { answerError } from "./call-status.ts";
import { type CallInit, OutgoingCall } from "./outgoing-call.ts";

/** What a unary call is answered with. */
export interface UnaryAnswer {
  readonly header: Headers;
  readonly message: Message;
  readonly trailer: Headers;
}

/** A call with one message each way. */
export abstract class UnaryCall extends OutgoingCall {
  readonly #request: Uint8Array;
  /** The answer, if it is one piece so far. */
  #first: Uint8Array = noBytes;
  #collected: CollectedBytes | undefined;

  constructor(init: CallInit, request: Uint8Array) {
    super(init);
    this.#request = request;
  }

  /** Called once when the call has succeeded. */
  protected abstract answered(message: Message, trailer: HeaderFields): void;

  /** Called instead when the status says success, but there is no message that can be read. */
  protected abstract unreadable(error: ConnectError): void;

  protected get repeatable(): boolean {
    return true;
  }

  protected send(stream: ClientStream): void {
    stream.end(this.#request);
  }

  protected begun(_head: HeaderFields): void {}

  onWritable(): void {}

  onData(piece: Uint8Array): void {
    this.stream?.consumed(piece.byteLength);
    const limitBytes = envelopePrefixBytes + this.method.settings.readMaxBytes;
    if (this.#collected === undefined && this.#first.byteLength === 0) {
      const announcedBytes = envelopeBytes(piece);
      if (Math.max(piece.byteLength, announcedBytes) > limitBytes) return this.#refuse();
      if (piece.byteLength >= announcedBytes) {
        this.#first = detachFromChunk(piece, this.method.memory);
        return; // No test can tell: it would be copied once more.
      }
      this.#collected = new CollectedBytes(announcedBytes, limitBytes);
    }
    const collected = (this.#collected ??= this.#collect(limitBytes));
    if (collected.byteLength + piece.byteLength > limitBytes) this.#refuse();
    else collected.add(piece);
  }

  protected completed(trailer: HeaderFields): void {
    try {
      const body = this.#collected?.bytes ?? this.#first;
      const message = this.method.open(readSingleEnvelope(body, this.method.settings.readMaxBytes), this.coding);
      if (message instanceof Promise)
        message.then(
          (opened) => this.answered(opened, trailer),
          (error: ConnectError) => this.unreadable(error),
        );
      else this.answered(message, trailer);
    } catch (error) {
      this.unreadable(answerError(error));
    }
  }

  #collect(limitBytes: number): CollectedBytes {
    // No test can tell: another size only takes more memory, or a copy more.
    const collected = new CollectedBytes(envelopeBytes(this.#first), limitBytes);
    collected.add(this.#first);
    return collected;
  }

  /** Refuses what is longer than a message may be, before the rest of it comes. */
  #refuse(): void {
    const { readMaxBytes } = this.method.settings;
    this.fail(new ConnectError(`the answer is larger than ${readMaxBytes} bytes`, Code.ResourceExhausted));
  }
}

/** A unary call of a transport, whose answer is promised. */
export class PromisedCall extends UnaryCall {
  readonly #resolve: (answer: UnaryAnswer) => void;
  readonly #reject: (error: ConnectError) => void;

  constructor(
    init: CallInit,
    request: Uint8Array,
    resolve: (answer: UnaryAnswer) => void,
    reject: (error: ConnectError) => void,
  ) {
    super(init, request);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  protected answered(message: Message, trailer: HeaderFields): void {
    this.#resolve({ header: new LazyHeaders(this.head ?? []), message, trailer: new LazyHeaders(trailer) });
  }

  protected unreadable(error: ConnectError): void {
    this.#reject(error);
  }

  protected failed(error: ConnectError): void {
    this.#reject(error);
  }
}
