import { Code, ConnectError } from "@connectrpc/connect";
import { Envelope, type Caller, type Reply } from "@protoport/gateway/forward";
import type { Message } from "@bufbuild/protobuf";

/** The target for a call's response. After `end` or `fail`, its functions have no effect. */
export interface CallResponse {
  /** Sends a message. Calls `sent` when the next message may be sent. */
  send(message: Envelope | Message, sent: () => void): void;
  /** Ends the response successfully. */
  end(): void;
  fail(error: unknown): void;
}

/** A unary call's response. */
export class UnaryResponse implements CallResponse {
  readonly #reply: Reply;
  readonly #headers: Caller["headers"];
  #message: Envelope | Message | undefined;

  constructor(reply: Reply, headers: Caller["headers"]) {
    this.#reply = reply;
    this.#headers = headers;
  }

  send(message: Envelope | Message, sent: () => void): void {
    this.#message = message;
    sent();
  }

  end(): void {
    const message = this.#message;
    if (message === undefined) return this.fail(messageCountError(0));
    if (message instanceof Envelope) return this.#reply.resolve(message);
    const { responseHeader: header, responseTrailer: trailer } = this.#headers;
    this.#reply.resolve({ message, header, trailer });
  }

  fail(error: unknown): void {
    this.#reply.reject(error);
  }
}

/** Returns the error for a response that must have one message. */
function messageCountError(count: number): ConnectError {
  return new ConnectError(`the handler sent ${count === 0 ? "no message" : "several messages"}`, Code.Internal);
}

/** A message, and a callback that is called when the next message may be sent. */
interface SentMessage {
  readonly message: Envelope | Message;
  readonly sent: () => void;
}

/**
 * A streaming call's response. A message is sent when the gateway reads it from the response, so that a client that
 * reads slowly pauses the handler.
 */
export class StreamedResponse implements CallResponse, AsyncIterableIterator<Envelope | Message> {
  readonly #messages: SentMessage[] = [];
  #isEnded = false;
  #error: unknown;
  #next: PromiseWithResolvers<IteratorResult<Envelope | Message>> | undefined;

  send(message: Envelope | Message, sent: () => void): void {
    this.#messages.push({ message, sent });
    this.#serve();
  }

  end(): void {
    this.#isEnded = true;
    this.#serve();
  }

  fail(error: unknown): void {
    this.#error ??= error;
    this.#isEnded = true;
    this.#serve();
  }

  next(): Promise<IteratorResult<Envelope | Message>> {
    this.#next = Promise.withResolvers();
    const { promise } = this.#next;
    this.#serve();
    return promise;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #serve(): void {
    const next = this.#next;
    if (next === undefined) return;
    const first = this.#messages.shift();
    if (first === undefined && !this.#isEnded) return;
    this.#next = undefined;
    if (first !== undefined) {
      next.resolve({ done: false, value: first.message });
      first.sent();
    } else if (this.#error === undefined) next.resolve({ done: true, value: undefined });
    else next.reject(this.#error);
  }
}

/** A client-streaming call's response, which must have one message. The handler could write several, or none. */
export class SingleResponse extends StreamedResponse {
  #message: Envelope | Message | undefined;
  #count = 0;

  override send(message: Envelope | Message, sent: () => void): void {
    this.#message = message;
    this.#count += 1;
    sent();
  }

  override end(): void {
    if (this.#message === undefined || this.#count > 1) return this.fail(messageCountError(this.#count));
    super.send(this.#message, doNothing);
    super.end();
  }
}

function doNothing(): void {}
