import type { ConnectError } from "@connectrpc/connect";
import {
  runAfterTurn,
  concatBytes,
  type HeaderFields,
  type Interval,
  noBytes,
  startDeadline,
  startInterval,
} from "../http/index.ts";
import type { Content, Rpc, StreamWire } from "../protocols/index.ts";
import { headersToSend } from "./call-view.ts";
import { type ServedCall, ServedRequest } from "./request.ts";
import { explainUnwritable } from "./wrong-value.ts";

/** Bytes of messages per event-loop turn after which the handler is paused. */
// Without this limit of 64 KiB, a handler that never waits would block the turn, and the collected messages would grow
// without bound.
const maxCollectedMessagesBytes = 64 * 1024;

/** Milliseconds after which a stream's header is sent without a message. */
// A handler that fails within 250 ms, such as after a lookup, can still set the status. Readers do not notice the
// delay.
const headerDelayMs = 250;

/** Milliseconds without a message after which a heartbeat is sent. */
// The interval of 15 s is half of the shortest idle timeout in common proxies.
const heartbeatMs = 15_000;

/** Milliseconds after which a response that has begun is aborted because compressing its error takes too long. */
// The timeout is 30 s because the error cannot be sent uncompressed, and node's thread pool may be busy.
const maxBegunErrorCompressionMs = 30_000;

interface StreamedCall extends ServedCall {
  readonly rpc: Rpc;
  /** Converts an item of the response stream to the message, envelope or part that the wire writes. */
  toMessage(item: unknown): Content | Uint8Array;
}

/**
 * A call's response, which is written as the messages arrive.
 *
 * The messages from one event-loop turn are sent in one write. A complete response within a turn is also sent in one
 * write. Under backpressure, the handler is paused.
 */
export class StreamResponse {
  readonly #call: StreamedCall;
  readonly #request: ServedRequest;
  readonly #wire: StreamWire;
  #heartbeat: Interval | undefined;
  /** Stops the timer after which the header is sent without a message. */
  #stopHeaderTimer: (() => void) | undefined;
  #header: Headers;
  /** The header fields to send, or `undefined` until the header is final. */
  #headerFields: HeaderFields | undefined;
  #trailer: Headers;
  #messages: AsyncIterator<unknown> | undefined;
  #closeMessages: (() => void) | undefined;
  /** The encoded messages that are sent after the event-loop turn. */
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #hasBegun = false;
  /** Whether the header may be sent as soon as interceptors have returned the response. */
  #beginsWithoutMessage = false;
  #isWrapped = false;
  /** Whether no bytes may follow, because the end is being written or a write has failed. */
  #isClosed = false;
  /** Whether a flush after the event-loop turn is scheduled. */
  #isFlushScheduled = false;
  /** Whether a write is waiting for the client or for compression. */
  #isBlocked = false;
  /** Whether the handler is paused and must be resumed. */
  #isPaused = false;

  constructor(call: StreamedCall, wire: StreamWire) {
    this.#call = call;
    this.#request = call.request;
    this.#wire = wire;
    this.#header = wire.responseHeader;
    this.#trailer = wire.responseTrailer;
  }

  /** @param isWrapped - whether an interceptor has replaced the stream, and may set fields until its first message */
  respond(header: Headers, trailer: Headers, items: AsyncIterable<unknown>, isWrapped: boolean): void {
    const messages = items[Symbol.asyncIterator]();
    const closeMessages = createCloseCallback(messages);
    if (this.#request.isDone) return closeMessages();
    this.#header = header;
    this.#trailer = trailer;
    this.#messages = messages;
    this.#closeMessages = closeMessages;
    this.#isWrapped = isWrapped;
    if (this.#beginsWithoutMessage) this.beginSoon();
    // If the client streams, the header is not sent early, so that an error in a message can still set the status.
    if (this.#call.rpc.method.methodKind !== "server_streaming") this.#startHeartbeat();
    else if (this.#wire.traits.sendsHeaderEarly) {
      // The header is sent after the event-loop turn. If the timer fires late, the handler may yield the first message
      // in the same turn.
      this.#stopHeaderTimer = startDeadline(headerDelayMs, () => runAfterTurn(beginStream, this));
    }
    this.#pull();
  }

  #pull(): void {
    this.#isPaused = false;
    try {
      // An iterator from JavaScript code may throw synchronously, or return a value that is not a promise.
      if (this.#messages !== undefined) Promise.resolve(this.#messages.next()).then(this.#onNext, this.#onError);
    } catch (error) {
      this.#onError(error);
    }
  }

  readonly #onError = (error: unknown): void => this.#request.failHandling(error, this.#call.view);

  readonly #onNext = (result: IteratorResult<unknown>): void => {
    if (this.#request.isDone) return;
    let message: Content | Uint8Array;
    try {
      if (result.done === true) {
        this.#messages = undefined;
        return this.#succeed();
      }
      message = this.#call.toMessage(result.value);
    } catch (error) {
      return this.#onError(error);
    }
    this.#encode(message);
  };

  #encode(message: Content | Uint8Array): void {
    try {
      const bytes = this.#wire.encode(message);
      if (!(bytes instanceof Promise)) return this.#add(bytes);
      bytes.then((packed) => this.#add(packed)).catch(this.#onFault);
    } catch (error) {
      this.#onFault(explainUnwritable(error, this.#call.rpc, { message }));
    }
  }

  readonly #onFault = (error: unknown): void => this.#request.failToWrite(error);

  #add(bytes: Uint8Array): void {
    this.#settleHeader();
    const { earlyEnd } = this.#wire;
    if (earlyEnd !== undefined) return earlyEnd === "complete" ? this.#succeed() : this.#request.fail(earlyEnd);
    this.#heartbeat?.restart();
    this.#collect(bytes);
    // The only message in a response is sent together with the end of the response.
    if (this.#call.rpc.method.methodKind === "client_streaming") return this.#pull();
    if (!this.#isFlushScheduled) {
      this.#isFlushScheduled = true;
      runAfterTurn(flushStream, this);
    }
    if (this.#isBlocked || this.#pieceBytes >= maxCollectedMessagesBytes) this.#isPaused = true;
    else this.#pull();
  }

  #collect(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#pieceBytes += bytes.byteLength;
  }

  /**
   * Sends the header after this event-loop turn, with any messages from this turn, instead of waiting for the first
   * message. Waits for {@link respond}, because interceptors may change the header until they return the response. Has
   * no effect if an error before the first message determines the HTTP status, as on REST, or for a wrapped stream.
   */
  beginSoon(): void {
    this.#beginsWithoutMessage = this.#wire.traits.reportsErrorAtEnd && !this.#isWrapped;
    if (this.#beginsWithoutMessage && this.#messages !== undefined) runAfterTurn(beginStream, this);
  }

  /** Undoes {@link beginSoon}, because another attempt of the call replaces the header. */
  delayBegin(): void {
    this.#beginsWithoutMessage = false;
  }

  /** Sends the header unless the header was already sent. */
  begin(): void {
    if (this.#request.isDone || this.#hasBegun) return;
    try {
      this.#settleHeader();
    } catch (error) {
      return this.#onFault(error);
    }
    if (this.#wire.earlyEnd === "complete") this.#succeed();
    else this.flush();
  }

  #startHeartbeat(): void {
    const { heartbeat } = this.#wire.traits;
    if (heartbeat !== undefined) this.#heartbeat ??= startInterval(heartbeatMs, () => this.#sendHeartbeat(heartbeat));
  }

  /** Sends a heartbeat unless there is backpressure. */
  #sendHeartbeat(heartbeat: Uint8Array): void {
    if (this.#isBlocked) return;
    this.#collect(heartbeat);
    this.flush();
  }

  /** Sends the messages collected in this turn unless the call has ended. */
  flush(): void {
    if (this.#request.isDone || this.#isClosed) return;
    try {
      this.#send();
    } catch (error) {
      return this.#onFault(error);
    }
    if (this.#isPaused && !this.#isBlocked) this.#pull();
  }

  #send(): void {
    this.#isFlushScheduled = false;
    if (!this.#hasBegun) {
      this.#wire.begin(this.#settleHeader());
      this.#hasBegun = true;
      this.#startHeartbeat();
    }
    if (this.#pieces.length === 0) return;
    const written = this.#wire.send(this.#takePieces());
    if (!(written instanceof Promise)) return;
    this.#isBlocked = true;
    const resume = (): void => {
      this.#isBlocked = false;
      if (!this.#request.isDone && this.#isPaused) this.#pull();
    };
    // The write fails only if compression fails. If the client disconnects, the call ends before the write could fail.
    const failWrite = (error: unknown): void => {
      this.#isClosed = true;
      this.#onFault(error);
    };
    written.then(resume, failWrite);
  }

  /** Finalizes the header. Handlers may change the header until their first message. */
  #settleHeader(): HeaderFields {
    if (this.#headerFields !== undefined) return this.#headerFields;
    const header = this.#header;
    const { responseHeader } = this.#wire;
    // If an interceptor's header cannot be sent, the error response uses the call's own header.
    this.#header = responseHeader;
    return (this.#headerFields = this.#wire.headerToSend(headersToSend(header, responseHeader)));
  }

  #takePieces(): Uint8Array {
    const [first = noBytes] = this.#pieces;
    const bytes = this.#pieces.length < 2 ? first : concatBytes(this.#pieces);
    this.#pieces = [];
    this.#pieceBytes = 0;
    return bytes;
  }

  #succeed(): void {
    let written: void | Promise<void>;
    try {
      written = this.#finish(headersToSend(this.#trailer, this.#wire.responseTrailer), undefined, true);
    } catch (error) {
      return this.#onFault(error);
    }
    this.#isClosed = true;
    this.#request.succeed(written);
  }

  #finish(trailer: Headers, error: ConnectError | undefined, mayCompress: boolean): void | Promise<void> {
    const header = this.#settleHeader();
    if (!this.#hasBegun) return this.#wire.respond(header, this.#takePieces(), trailer, error, mayCompress);
    this.#send();
    return this.#wire.end(trailer, error);
  }

  writeError(error: ConnectError, mayCompress: boolean): void | Promise<void> {
    if (this.#hasBegun && this.#isClosed) return this.#abortResponse();
    const pieces = this.#pieces;
    const written = this.#finish(this.#wire.responseTrailer, error, mayCompress);
    this.#isClosed = true;
    // Restores the messages, because a second call of `writeError` sends the messages again.
    this.#pieces = pieces;
    return written;
  }

  get maxErrorCompressionMs(): number | undefined {
    return this.#hasBegun ? maxBegunErrorCompressionMs : undefined;
  }

  /** Resets the exchange, so that the client detects the incomplete body. No error can be sent in this body. */
  #abortResponse(): void {
    ServedRequest.exchangeOf(this.#request).reset();
    this.#wire.release();
  }

  close(): void {
    this.#stopHeaderTimer?.();
    this.#heartbeat?.stop();
    if (this.#messages !== undefined) this.#closeMessages?.();
    this.#messages = undefined;
  }
}

function flushStream(response: StreamResponse): void {
  response.flush();
}

function beginStream(response: StreamResponse): void {
  response.begin();
}

/**
 * Returns a function that closes an iterator early, in the async context of the `createCloseCallback` call. The event
 * for a client's disconnect has another async context. The close is not awaited, so that a stuck handler cannot delay
 * the response.
 */
function createCloseCallback(messages: AsyncIterator<unknown>): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  promise.then(() => messages.return?.()).catch(() => undefined);
  return resolve;
}
