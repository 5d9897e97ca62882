import { AsyncResource } from "node:async_hooks";
import type { Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type HeaderFields, copyIfPooled } from "@protoport/gateway/exchange";
import type { ClientStream } from "@protoport/gateway/http2-client";
import { LazyHeaders } from "@protoport/gateway/forward";
import { type CallInit, OutgoingCall } from "./outgoing-call.ts";
import { ResponseMessages } from "./response-messages.ts";

/** A streaming call's response. */
export interface StreamCallResponse {
  readonly header: Headers;
  readonly message: AsyncIterable<Message>;
  /** The trailer fields. Empty until the response messages have ended. */
  readonly trailer: Headers;
}

/**
 * Maximum message bytes that are kept for a retry until the response header arrives. A call that sends more is not
 * retried. 96 KiB is HTTP/2's initial window (64 KiB) and two queued frames, all that is sent before a refusal.
 */
const maxKeptBytes = 96 * 1024;

/** A call with a message stream in one or both directions. */
export abstract class OutgoingStream<T> extends OutgoingCall<T> {
  /**
   * The caller's async context, in which the request messages are read. Socket events run in the context of the call
   * that opened the connection.
   */
  readonly #context = new AsyncResource("OutgoingStream");
  readonly #input: AsyncIterator<unknown>;
  readonly #received = new ResponseMessages((bytes) => this.stream?.consumed(bytes));
  /** The response messages as they arrive. The iterator throws if the call fails. */
  readonly messages: AsyncIterable<T>;
  /** The sent envelopes, for a retry. Undefined once the response has begun, or above {@link maxKeptBytes}. */
  #retryMessages: Uint8Array[] | undefined = [];
  #keptBytes = 0;
  #inputState: "unread" | "reading" | "ended" = "unread";
  /** Resumes reading the input once the queued bytes are sent. */
  #resume: (() => void) | undefined;

  constructor(init: CallInit<T>, input: AsyncIterable<unknown>) {
    super(init);
    this.#input = input[Symbol.asyncIterator]();
    this.messages = this.readResponse(this.#received);
  }

  protected get isRepeatable(): boolean {
    return this.#retryMessages !== undefined;
  }

  protected send(stream: ClientStream): void {
    for (const envelope of this.#retryMessages ?? []) stream.sendData(envelope);
    if (this.#inputState === "ended") stream.end(undefined);
    if (this.#inputState !== "unread") return this.onWritable();
    this.#inputState = "reading";
    const inputSent = this.#context.runInAsyncScope(() => this.#sendInput());
    inputSent.catch((error: unknown) => this.fail(ConnectError.from(error)));
  }

  protected override headReceived(_head: HeaderFields): void {
    // equivalent mutant: this line only frees memory, because a call whose response has begun is not retried.
    this.#retryMessages = undefined;
  }

  onData(piece: Uint8Array): void {
    this.#received.onData(piece);
  }

  onWritable(): void {
    this.#resume?.();
  }

  protected failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    if (trailer === undefined) this.#received.fail(error);
    else this.#received.end(error);
    this.#stopInput();
  }

  protected completed(_trailer: HeaderFields): ConnectError | undefined {
    this.#received.end(undefined);
    this.#stopInput();
    return undefined;
  }

  async #sendInput(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#input.next();
      if (this.isDone) return;
      if (done === true) break;
      const envelope = await this.method.envelop(value);
      this.#keepForRetry(envelope);
      this.stream?.sendData(envelope);
      if (this.stream === undefined || this.stream.queuedBytes > 0) {
        await new Promise<void>((resolve) => {
          this.#resume = resolve;
        });
      }
    }
    this.#inputState = "ended";
    this.stream?.end(undefined);
  }

  #keepForRetry(envelope: Uint8Array): void {
    this.#keptBytes += envelope.byteLength;
    // The limit does not apply while no stream is open, because the next attempt sends the kept envelopes first.
    if (this.#keptBytes > maxKeptBytes && this.stream !== undefined) this.#retryMessages = undefined;
    // A forwarded envelope is copied, because a slice would keep the entire received chunk in memory.
    this.#retryMessages?.push(copyIfPooled(envelope));
  }

  #stopInput(): void {
    if (this.#inputState === "ended") return;
    // The call is complete, so errors from the caller's iterator are ignored.
    this.#context.runInAsyncScope(() => this.#endInput()).catch(() => undefined);
  }

  /** Stops the caller's iterator. Async, so that an error thrown by the iterator's `return` becomes a rejection. */
  async #endInput(): Promise<void> {
    await this.#input.return?.();
  }
}

/** A transport's streaming call that settles a promise with the response header. */
export class PromisedStream extends OutgoingStream<Message> {
  readonly #resolve: (response: StreamCallResponse) => void;
  readonly #reject: (error: ConnectError) => void;
  readonly #trailer: Headers = new Headers();

  constructor(
    init: CallInit<Message>,
    input: AsyncIterable<unknown>,
    resolve: (response: StreamCallResponse) => void,
    reject: (error: ConnectError) => void,
  ) {
    super(init, input);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  protected override headReceived(head: HeaderFields): void {
    super.headReceived(head);
    this.#resolve({ header: new LazyHeaders(head), message: this.messages, trailer: this.#trailer });
  }

  protected override failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    this.#reject(error);
    this.#addTrailer(trailer ?? []);
    super.failed(error, trailer);
  }

  protected override completed(trailer: HeaderFields): ConnectError | undefined {
    this.#addTrailer(trailer);
    super.completed(trailer);
    // A trailers-only response has no header, so the trailer replaces the header.
    if (this.head === undefined) this.headReceived(trailer);
    return undefined;
  }

  #addTrailer(trailer: HeaderFields): void {
    new LazyHeaders(trailer).forEach((value, name) => this.#trailer.append(name, value));
  }
}
