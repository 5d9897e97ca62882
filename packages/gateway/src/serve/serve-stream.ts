import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, HandlerContext, StreamRequest, StreamResponse } from "@connectrpc/connect";
import {
  afterTurn,
  concatBytes,
  type HeaderFields,
  type Interval,
  noBytes,
  startDeadline,
  startInterval,
} from "../exchange/index.ts";
import { oneMessage, type RequestMessages, type Rpc, type StreamTarget, type StreamWire } from "../protocols/index.ts";
import { CallView } from "./call-view.ts";
import { decodeBody, type MessageCall, readBody, runLarge } from "./read-message.ts";
import { exchangeOf, headersToSend, type ServedCall, type ServedRequest } from "./request.ts";
import { explainUnwritable } from "./wrong-value.ts";
import { YieldedMessages } from "./yielded-messages.ts";

/** The size of messages collected in a turn at which the handler is paused. */
// 64 KiB: otherwise a handler that never waits would block the turn, and the collected messages would grow without
// bound.
const collectedBytesMax = 64 * 1024;

/** Milliseconds without a message after which the header of a stream is sent on its own. */
// 250 ms: a handler that fails after a lookup can still set a status, and readers do not notice the delay.
const headerDelayMs = 250;

/** Milliseconds without a message after which a heartbeat is sent. */
// 15 s: half of the shortest idle timeout of common proxies.
const heartbeatMs = 15_000;

/** The timeout for compressing the error of a response that has begun, after which the response is aborted. */
// 30 s: such an error cannot be sent uncompressed, and node's thread pool may be busy.
const begunErrorCompressionMsMax = 30_000;

/** Opens a streaming call and starts its deadline. */
export function serveStream(request: ServedRequest, target: StreamTarget): void {
  const { rpc } = target;
  const wire = target.open(exchangeOf(request));
  request.begin(new StreamCall(request, rpc, wire), rpc, wire.timeoutMs);
}

/**
 * A streaming call, from its open wire to its response.
 *
 * The messages of one turn of the event loop are sent in one write. Under backpressure, the handler is paused. A
 * response that completes within a turn is sent in one write, too.
 */
export class StreamCall implements ServedCall, MessageCall {
  readonly request: ServedRequest;
  readonly rpc: Rpc;
  readonly wire: StreamWire;
  readonly view: CallView;
  #heartbeat: Interval | undefined;
  /** Stops the timer that sends the header on its own. */
  #stopHeaderTimer: (() => void) | undefined;
  #header: Headers;
  /** The header to send; `undefined` until it is final. */
  #headerFields: HeaderFields | undefined;
  #trailer: Headers;
  /** The messages of a streaming client. */
  #requests: RequestMessages | undefined;
  #messages: AsyncIterator<unknown> | undefined;
  #closeMessages: (() => void) | undefined;
  #output: YieldedMessages | undefined;
  /** Encoded messages to be sent at the end of the turn. */
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #hasBegun = false;
  /** Whether nothing may follow, because the end is being written or a write has failed. */
  #isClosed = false;
  /** Whether a flush is scheduled. */
  #isFlushScheduled = false;
  /** Whether there is backpressure. */
  #isBlocked = false;
  /** Whether the handler is paused and must be resumed. */
  #isPaused = false;

  /** @param view - the view of the unary call whose response this writes */
  constructor(request: ServedRequest, rpc: Rpc, wire: StreamWire, view?: CallView) {
    this.request = request;
    this.rpc = rpc;
    this.wire = wire;
    this.view = view ?? new CallView(this, exchangeOf(request), rpc, wire, wire.timeoutMs);
    this.#header = wire.responseHeader;
    this.#trailer = wire.responseTrailer;
  }

  /** Reads the messages as they arrive, or the body if the client sends a single message. */
  read(): void {
    if (this.rpc.method.methodKind === "server_streaming") readBody(this);
    else this.#invoke((this.#requests = this.wire.readMessages()));
  }

  received(body: Uint8Array | undefined): void {
    decodeBody(this, body);
  }

  receivedLarge(start: Uint8Array, rest: AsyncIterable<Uint8Array>): void {
    runLarge(this, start, rest);
  }

  run(message: Message): void {
    this.#invoke(oneMessage(message));
  }

  #invoke(messages: AsyncIterable<Message>): void {
    const { rpc } = this;
    if (rpc.kind === "unary") return;
    this.view.message = messages;
    const request = this.view as CallView & StreamRequest;
    (async () => this.respond(await rpc.invoke(request)))().catch(this.#onError);
  }

  /** Sends a response as its messages arrive. */
  respond({ header, trailer, message }: Pick<StreamResponse, "header" | "trailer" | "message">): void {
    this.#output = message instanceof YieldedMessages ? message : undefined;
    const messages = (this.#output?.source ?? message)[Symbol.asyncIterator]();
    const closeMessages = closerOf(messages);
    if (this.request.isDone) return closeMessages();
    this.#header = header;
    this.#trailer = trailer;
    this.#messages = messages;
    this.#closeMessages = closeMessages;
    // While the client may still send messages, the header is not sent early, so that an error in them can set the
    // status.
    if (this.rpc.method.methodKind !== "server_streaming") this.#startHeartbeat();
    else if (this.wire.sendsHeaderEarly === true) {
      // Sends the header after the turn: if the timer fires late, the handler may yield its first message in the same
      // turn.
      this.#stopHeaderTimer = startDeadline(headerDelayMs, () => afterTurn(beginCall, this));
    }
    this.#pull();
  }

  #pull(): void {
    this.#isPaused = false;
    try {
      // An unchecked iterator may throw synchronously, or return something other than a promise.
      if (this.#messages !== undefined) Promise.resolve(this.#messages.next()).then(this.#onNext, this.#onError);
    } catch (error) {
      this.#onError(error);
    }
  }

  readonly #onError = (error: unknown): void => this.request.failHandling(error, this.view);

  readonly #onNext = (result: IteratorResult<unknown>): void => {
    if (this.request.isDone) return;
    let message: Message;
    try {
      if (result.done === true) {
        this.#messages = undefined;
        return this.#succeed();
      }
      message = result.value as Message;
      if (this.#output !== undefined) message = this.#output.toMessage(message);
    } catch (error) {
      return this.#onError(error);
    }
    this.#encode(message);
  };

  #encode(message: Message): void {
    try {
      const bytes = this.wire.encode(message);
      if (!(bytes instanceof Promise)) return this.#add(bytes);
      bytes.then((packed) => this.#add(packed)).catch(this.#onFault);
    } catch (error) {
      this.#onFault(explainUnwritable(error, this.rpc, { message }));
    }
  }

  readonly #onFault = (error: unknown): void => this.request.failToWrite(error);

  #add(bytes: Uint8Array): void {
    this.#settleHeader();
    if (this.wire.isHeaderOnly === true) return this.#succeed();
    const { limitError } = this.wire;
    if (limitError !== undefined) return this.request.fail(limitError);
    this.#heartbeat?.restart();
    this.#collect(bytes);
    // The only message of a response is sent together with its end.
    if (this.rpc.method.methodKind === "client_streaming") return this.#pull();
    if (!this.#isFlushScheduled) {
      this.#isFlushScheduled = true;
      afterTurn(flushCall, this);
    }
    if (this.#isBlocked || this.#pieceBytes >= collectedBytesMax) this.#isPaused = true;
    else this.#pull();
  }

  #collect(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#pieceBytes += bytes.byteLength;
  }

  /** Sends the header unless it was already sent. */
  begin(): void {
    if (this.request.isDone || this.#hasBegun) return;
    try {
      this.#settleHeader();
    } catch (error) {
      return this.#onFault(error);
    }
    if (this.wire.isHeaderOnly === true) this.#succeed();
    else this.flush();
  }

  #startHeartbeat(): void {
    const { heartbeat } = this.wire;
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
    if (this.request.isDone || this.#isClosed) return;
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
      this.wire.begin(this.#settleHeader());
      this.#hasBegun = true;
      this.#startHeartbeat();
    }
    if (this.#pieces.length === 0) return;
    const written = this.wire.write(this.#takePieces());
    if (!(written instanceof Promise)) return;
    this.#isBlocked = true;
    const resume = (): void => {
      this.#isBlocked = false;
      if (!this.request.isDone && this.#isPaused) this.#pull();
    };
    // Compression failed. A disconnected client would have ended the call before.
    const failWrite = (error: unknown): void => {
      this.#isClosed = true;
      this.#onFault(error);
    };
    written.then(resume, failWrite);
  }

  /** Finalizes the header, which handlers may change until their first message. */
  #settleHeader(): HeaderFields {
    if (this.#headerFields !== undefined) return this.#headerFields;
    const header = this.#header;
    const { responseHeader } = this.wire;
    // If this header cannot be sent, the error response uses the call's own header.
    this.#header = responseHeader;
    return (this.#headerFields = this.wire.headerToSend(headersToSend(header, responseHeader)));
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
      written = this.#finish(headersToSend(this.#trailer, this.wire.responseTrailer), undefined);
    } catch (error) {
      return this.#onFault(error);
    }
    this.#isClosed = true;
    this.request.succeed(written);
  }

  /** Sends the collected messages and the end. */
  #finish(trailer: Headers, error: ConnectError | undefined): void | Promise<void> {
    const header = this.#settleHeader();
    if (!this.#hasBegun) return this.wire.respond(header, this.#takePieces(), trailer, error);
    this.#send();
    return this.wire.end(trailer, error);
  }

  writeError(error: ConnectError): void | Promise<void> {
    if (this.#hasBegun && this.#isClosed) return this.#abortResponse();
    const pieces = this.#pieces;
    const written = this.#finish(this.wire.responseTrailer, error);
    this.#isClosed = true;
    // A second call sends the same messages.
    this.#pieces = pieces;
    return written;
  }

  get errorCompressionMsMax(): number | undefined {
    return this.#hasBegun ? begunErrorCompressionMsMax : undefined;
  }

  /** Resets the exchange, so that the client detects the incomplete body, because no error can follow it. */
  #abortResponse(): void {
    exchangeOf(this.request).reset();
    this.wire.release?.();
  }

  close(): void {
    this.#stopHeaderTimer?.();
    this.#heartbeat?.stop();
    this.#requests?.close?.();
    if (this.#messages !== undefined) this.#closeMessages?.();
    this.#messages = undefined;
  }
}

/**
 * Sends the header of a streaming response after this turn of the event loop, with the messages of the turn, instead of
 * together with the first message. Has no effect if an error before the first message has its own HTTP status, as on
 * REST.
 *
 * @param context - the context of the handler of the stream
 */
export function beginResponse(context: HandlerContext): void {
  const { call } = context as Partial<CallView>;
  if (call instanceof StreamCall && call.wire.reportsErrorAtEnd) afterTurn(beginCall, call);
}

/** Returns whether the response of a call may consist of parts of messages ({@link Wire.writesParts}). */
export function writesParts(context: HandlerContext): boolean {
  return (context as Partial<CallView>).call?.wire.writesParts === true;
}

function flushCall(call: StreamCall): void {
  call.flush();
}

function beginCall(call: StreamCall): void {
  call.begin();
}

/**
 * Returns a function that closes an iterator early, in the async context in which `closerOf` was called. The event of a
 * disconnected client has a different context. The result is not awaited, so that a stuck handler cannot delay the
 * response.
 */
function closerOf(messages: AsyncIterator<unknown>): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  promise.then(() => messages.return?.()).catch(() => undefined);
  return resolve;
}
