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
import {
  oneMessage,
  type RequestMessages,
  type StreamRpc,
  type StreamTarget,
  type StreamWire,
} from "../protocols/index.ts";
import { CallView } from "./call-view.ts";
import { decodeBody, type MessageCall, readBody } from "./read-message.ts";
import { exchangeOf, headersToSend, type ServedCall, type ServedRequest } from "./request.ts";
import { explainUnwritable } from "./wrong-value.ts";
import { YieldedMessages } from "./yielded-messages.ts";

/** Bytes of messages collected in a turn, above which the handler is not asked for more. */
// 64 KiB: otherwise a handler that never waits would never let the turn end, and this would grow without bound.
const collectedBytesMax = 64 * 1024;

/** Milliseconds without a message after which the header of a stream that has a heartbeat is sent alone. */
// 250 ms: a handler that first looks something up still fails with a status, and a reader notices no wait.
const quietMs = 250;

/** Milliseconds without a message after which a stream that has a heartbeat gets one. */
// 15 s: half as long as the most impatient of common proxies waits.
const heartbeatMs = 15_000;

/** Milliseconds that the error of an answer that has begun may take to be encoded, before the answer breaks off. */
// 30 s: such an error cannot be sent as it is, and however quick its coding is, node's thread pool may be busy.
const begunErrorCodingMsMax = 30_000;

/** Opens a streaming call, which begins with its deadline. */
export function serveStream(request: ServedRequest, target: StreamTarget): void {
  const { rpc } = target;
  const wire = target.open(exchangeOf(request));
  request.begin(new StreamCall(request, rpc, wire), rpc, wire.timeoutMs);
}

/**
 * A streaming call, from its open wire to its response.
 *
 * The messages of one turn of the event loop are sent in one write. While the client takes no more, the handler is not
 * asked for its next message. An answer that completes within a turn is sent whole.
 */
class StreamCall implements ServedCall, MessageCall {
  readonly request: ServedRequest;
  readonly rpc: StreamRpc;
  readonly wire: StreamWire;
  readonly view: CallView;
  #heartbeat: Interval | undefined;
  /** Stops the timer that sends the header alone. */
  #stopQuiet: (() => void) | undefined;
  #header: Headers;
  /** The header as it is sent; `undefined` until it is final. */
  #headerFields: HeaderFields | undefined;
  #trailer: Headers;
  /** What the client streams, if it does. */
  #requests: RequestMessages | undefined;
  #messages: AsyncIterator<unknown> | undefined;
  #endMessages: (() => void) | undefined;
  #output: YieldedMessages | undefined;
  /** Encoded messages that wait for the end of the turn. */
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #begun = false;
  /** Whether nothing may follow: the end is being written, or a piece of the body was lost. */
  #closed = false;
  #flushing = false;
  /** Whether the client takes no more for now. */
  #blocked = false;
  /** Whether the handler is asked for its next message once there is room. */
  #waiting = false;

  constructor(request: ServedRequest, rpc: StreamRpc, wire: StreamWire) {
    this.request = request;
    this.rpc = rpc;
    this.wire = wire;
    this.view = new CallView(this, exchangeOf(request), rpc, wire, wire.timeoutMs);
    this.#header = wire.responseHeader;
    this.#trailer = wire.responseTrailer;
  }

  /** Reads the messages as they arrive, or the body if the client sends only one. */
  read(): void {
    if (this.rpc.method.methodKind === "server_streaming") readBody(this);
    else this.#invoke((this.#requests = this.wire.readMessages()));
  }

  received(body: Uint8Array | undefined): void {
    decodeBody(this, body);
  }

  run(message: Message): void {
    this.#invoke(oneMessage(message));
  }

  #invoke(messages: AsyncIterable<Message>): void {
    this.view.message = messages;
    const request = this.view as CallView & StreamRequest;
    (async () => this.#answer(await this.rpc.invoke(request)))().catch(this.#onError);
  }

  #answer({ header, trailer, message }: StreamResponse): void {
    this.#output = message instanceof YieldedMessages ? message : undefined;
    const messages = (this.#output?.source ?? message)[Symbol.asyncIterator]();
    const endMessages = enderOf(messages);
    if (this.request.done) return endMessages();
    this.#header = header;
    this.#trailer = trailer;
    this.#messages = messages;
    this.#endMessages = endMessages;
    // Not while the client may still send, so that a mistake in what it sends has a status.
    if (this.rpc.method.methodKind !== "server_streaming") this.#startHeartbeat();
    else if (this.wire.beginsQuietly === true) {
      // After the turn, which may bring what the handler waits for, however late the timer is.
      this.#stopQuiet = startDeadline(quietMs, () => afterTurn(beginCall, this));
    }
    this.#pull();
  }

  #pull(): void {
    this.#waiting = false;
    try {
      // An unchecked iterator may throw synchronously, or return something other than a promise.
      if (this.#messages !== undefined) Promise.resolve(this.#messages.next()).then(this.#onNext, this.#onError);
    } catch (error) {
      this.#onError(error);
    }
  }

  readonly #onError = (error: unknown): void => this.request.failHandling(error, this.view);

  readonly #onNext = (result: IteratorResult<unknown>): void => {
    if (this.request.done) return;
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
    if (this.wire.headOnly === true) return this.#succeed();
    this.#heartbeat?.restart();
    this.#collect(bytes);
    // The only message of an answer is sent together with its end.
    if (this.rpc.method.methodKind === "client_streaming") return this.#pull();
    if (!this.#flushing) {
      this.#flushing = true;
      afterTurn(flushCall, this);
    }
    if (this.#blocked || this.#pieceBytes >= collectedBytesMax) this.#waiting = true;
    else this.#pull();
  }

  #collect(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#pieceBytes += bytes.byteLength;
  }

  /** Sends the header, if nothing was sent. */
  begin(): void {
    if (this.request.done || this.#begun) return;
    try {
      this.#settleHeader();
    } catch (error) {
      return this.#onFault(error);
    }
    if (this.wire.headOnly === true) this.#succeed();
    else this.flush();
  }

  #startHeartbeat(): void {
    const { heartbeat } = this.wire;
    if (heartbeat !== undefined) this.#heartbeat ??= startInterval(heartbeatMs, () => this.#beat(heartbeat));
  }

  /** Sends a heartbeat, unless the client does not take what was sent before. */
  #beat(heartbeat: Uint8Array): void {
    if (this.#blocked) return;
    this.#collect(heartbeat);
    this.flush();
  }

  /** Sends what was collected in this turn, unless the call has ended. */
  flush(): void {
    if (this.request.done || this.#closed) return;
    try {
      this.#send();
    } catch (error) {
      return this.#onFault(error);
    }
    if (this.#waiting && !this.#blocked) this.#pull();
  }

  #send(): void {
    this.#flushing = false;
    if (!this.#begun) {
      this.wire.begin(this.#settleHeader());
      this.#begun = true;
      this.#startHeartbeat();
    }
    if (this.#pieces.length === 0) return;
    const written = this.wire.write(this.#takePieces());
    if (!(written instanceof Promise)) return;
    this.#blocked = true;
    const resume = (): void => {
      this.#blocked = false;
      if (!this.request.done && this.#waiting) this.#pull();
    };
    // It cannot be compressed. If the client goes away, the call has ended before.
    const failWrite = (error: unknown): void => {
      this.#closed = true;
      this.#onFault(error);
    };
    written.then(resume, failWrite);
  }

  /** Fixes the header, which handlers may change up to their first message. */
  #settleHeader(): HeaderFields {
    if (this.#headerFields !== undefined) return this.#headerFields;
    const given = this.#header;
    const { responseHeader } = this.wire;
    // An error is answered with the call's own header where the one that was given cannot be sent.
    this.#header = responseHeader;
    return (this.#headerFields = this.wire.headerToSend(headersToSend(given, responseHeader)));
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
      written = this.#close(headersToSend(this.#trailer, this.wire.responseTrailer), undefined);
    } catch (error) {
      return this.#onFault(error);
    }
    this.#closed = true;
    this.request.succeed(written);
  }

  /** Sends what was collected, and the end. */
  #close(trailer: Headers, error: ConnectError | undefined): void | Promise<void> {
    const header = this.#settleHeader();
    if (!this.#begun) return this.wire.answer(header, this.#takePieces(), trailer, error);
    this.#send();
    return this.wire.end(trailer, error);
  }

  writeError(error: ConnectError): void | Promise<void> {
    if (this.#begun && this.#closed) return this.#breakOff();
    const pieces = this.#pieces;
    const written = this.#close(this.wire.responseTrailer, error);
    this.#closed = true;
    // Called again, it sends the same messages.
    this.#pieces = pieces;
    return written;
  }

  get errorCodingMsMax(): number | undefined {
    return this.#begun ? begunErrorCodingMsMax : undefined;
  }

  /** Lets the client see that the body is incomplete, because no error can be put behind it. */
  #breakOff(): void {
    exchangeOf(this.request).reset();
    this.wire.release?.();
  }

  ended(): void {
    this.#stopQuiet?.();
    this.#heartbeat?.stop();
    this.#requests?.close?.();
    if (this.#messages !== undefined) this.#endMessages?.();
    this.#messages = undefined;
  }
}

/**
 * Sends the header of a stream's answer after this turn of the event loop, with the messages that come in it, instead of
 * together with the first message. Not where an error before the first message has an HTTP status, as on REST.
 *
 * @param context - what the handler of the stream was given
 */
export function beginAnswer(context: HandlerContext): void {
  const { call } = context as Partial<CallView>;
  if (call instanceof StreamCall && call.wire.endHasError) afterTurn(beginCall, call);
}

function flushCall(call: StreamCall): void {
  call.flush();
}

function beginCall(call: StreamCall): void {
  call.begin();
}

/**
 * Returns what ends an iterator early, in the asynchronous context in which this was called: a client that goes away has
 * another. Not awaited, so that a stuck handler cannot hold the answer back.
 */
function enderOf(messages: AsyncIterator<unknown>): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  promise.then(() => messages.return?.()).catch(() => undefined);
  return resolve;
}
