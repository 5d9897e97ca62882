import { AsyncResource } from "node:async_hooks";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type HeaderFields, RequestBody, unpooled } from "@plantstore/gateway/exchange";
import type { ClientStream } from "@plantstore/http-engine/client";
import { EnvelopeReader, LazyHeaders, readMessages } from "@plantstore/gateway/internal/protocols";
import { answerError } from "./call-status.ts";
import { type CallInit, OutgoingCall } from "./outgoing-call.ts";

/** What a stream is answered with. */
export interface StreamAnswer {
  readonly header: Headers;
  readonly message: AsyncIterable<Message>;
  /** Empty before the messages have ended. */
  readonly trailer: Headers;
}

/**
 * Bytes of messages that were sent and are kept until the header of the answer has come, so that a call that the server
 * has refused can be sent again. 64 KiB: above, it fails instead.
 */
const keptBytesMax = 64 * 1024;

/** A call with a stream of messages one way or both. */
export class StreamCall extends OutgoingCall {
  /** Where the caller's messages are made, rather than in the context of the call that has opened the connection. */
  readonly #context = new AsyncResource("StreamCall");
  readonly #input: AsyncIterator<unknown>;
  readonly #resolve: (answer: StreamAnswer) => void;
  readonly #reject: (error: ConnectError) => void;
  readonly #trailer: Headers = new Headers();
  readonly #body: RequestBody;
  /** What was sent; `undefined` when it is not needed any more, or too much. */
  #kept: Uint8Array[] | undefined = [];
  #keptBytes = 0;
  #inputState: "unread" | "reading" | "ended" = "unread";
  /** Why the call has failed. */
  #error: ConnectError | undefined;
  /** Goes on reading the input once what was sent is on its way. */
  #resume: (() => void) | undefined;

  constructor(
    init: CallInit,
    input: AsyncIterable<unknown>,
    resolve: (answer: StreamAnswer) => void,
    reject: (error: ConnectError) => void,
  ) {
    super(init);
    this.#input = input[Symbol.asyncIterator]();
    this.#resolve = resolve;
    this.#reject = reject;
    this.#body = new RequestBody({ startBody: () => undefined, consumed: (bytes) => this.stream?.consumed(bytes) }, 0);
  }

  protected get repeatable(): boolean {
    return this.#kept !== undefined;
  }

  protected send(stream: ClientStream): void {
    for (const envelope of this.#kept ?? []) stream.sendData(envelope);
    if (this.#inputState === "ended") stream.end(undefined);
    if (this.#inputState !== "unread") return this.onWritable();
    this.#inputState = "reading";
    const sent = this.#context.runInAsyncScope(() => this.#sendInput());
    sent.catch((error: unknown) => this.fail(ConnectError.from(error)));
  }

  protected begun(head: HeaderFields): void {
    // No test can tell: what is answered is not sent again, so this only frees memory.
    this.#kept = undefined;
    this.#resolve({ header: new LazyHeaders(head), message: this.#messages(), trailer: this.#trailer });
  }

  onData(piece: Uint8Array): void {
    this.#body.onData(piece, false);
  }

  onWritable(): void {
    this.#resume?.();
  }

  protected failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    this.#reject(error);
    this.#error = error;
    this.#endBoth(trailer);
  }

  protected completed(trailer: HeaderFields): void {
    // No test can tell: in either order, the caller reads later what both resolve.
    this.#endBoth(trailer);
    // The header was all of the answer: there are no messages.
    if (this.head === undefined) this.begun(trailer);
  }

  /** Ends the messages of both sides. */
  #endBoth(trailer: HeaderFields | undefined): void {
    if (trailer === undefined) this.#body.close();
    else {
      // What came before the trailer is still read.
      new LazyHeaders(trailer).forEach((value, name) => this.#trailer.append(name, value));
      this.#body.onEnd();
    }
    this.#stopInput();
  }

  async #sendInput(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#input.next();
      if (this.done) return;
      if (done === true) break;
      const envelope = await this.method.envelop(value);
      this.#keep(envelope);
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

  #keep(envelope: Uint8Array): void {
    this.#keptBytes += envelope.byteLength;
    // Without a stream, what is kept is all that the next one will be sent; the input then waits.
    if (this.#keptBytes > keptBytesMax && this.stream !== undefined) this.#kept = undefined;
    // One that is passed on as it came is a slice of its chunk.
    this.#kept?.push(unpooled(envelope));
  }

  /** Tells the caller's messages that nobody reads on. */
  #stopInput(): void {
    if (this.#inputState === "ended") return;
    // A generator that waits ends when it goes on. Nobody is left to be told of what it throws then.
    this.#context.runInAsyncScope(() => this.#endInput()).catch(() => undefined);
  }

  /** Rejects with whatever the caller's iterator throws, even if that is not a generator and throws at once. */
  async #endInput(): Promise<void> {
    await this.#input.return?.();
  }

  #messages(): AsyncIterable<Message> {
    const splitter = new EnvelopeReader(this.method.settings.readMaxBytes, (envelope) =>
      this.method.open(envelope, this.coding),
    );
    const messages = readMessages(this.#body.pieces(), splitter)[Symbol.asyncIterator]();
    const iterator: AsyncIterator<Message> = {
      next: async () => {
        // Even if all of the answer has come: a caller that has given up wants none of it.
        if (this.abandonment !== undefined) throw this.abandonment;
        let result: IteratorResult<Message>;
        try {
          result = await messages.next();
        } catch (error) {
          const found = this.#error ?? answerError(error);
          this.fail(found);
          throw found;
        }
        if (result.done === true && this.#error !== undefined) throw this.#error;
        return result;
      },
      // A caller that reads no more has no use for the rest.
      return: () => {
        this.fail(new ConnectError("the messages are not read any more", Code.Canceled));
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  }
}
