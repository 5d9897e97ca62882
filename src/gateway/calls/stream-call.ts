import type { Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  type HandlerContext,
  type StreamRequest,
  type StreamResponse,
} from "@connectrpc/connect";
import {
  type AbortReceiver,
  afterTurn,
  type BodyReceiver,
  concatBytes,
  type Exchange,
  goneAway,
  type HeaderFields,
  type Heart,
  startDeadline,
  startHeart,
} from "../carriers/index.ts";
import { messageTooLarge, type StreamProcedure, type StreamProtocol } from "../protocols/index.ts";
import type { ViewedCall } from "./call-view.ts";
import { YieldedMessages } from "./yielded-messages.ts";
import { type CallOwner, completed, isPromise, toConnectError } from "./unary-call.ts";

/** Parts of a {@link StreamCall}. */
export interface StreamCallInit {
  readonly exchange: Exchange;
  readonly procedure: StreamProcedure;
  readonly protocol: StreamProtocol;
  readonly values: ContextValues;
  readonly owner: CallOwner;
}

/** Bytes of messages collected in a turn, above which the handler is not asked for more. */
// 64 KiB: a handler that never waits would otherwise keep the turn from ending while this grows.
const collectedBytesMax = 64 * 1024;

/** Milliseconds without a message after which a stream that has a heartbeat gets one. */
// 15 s: half of what the most impatient of common proxies waits.
const heartbeatMs = 15_000;

/**
 * One streaming call, from its admitted header to its end.
 *
 * The messages of one turn of the event loop are sent in one write. While the client takes no more, the handler is not
 * asked for its next message. An answer that completes within a turn is sent whole.
 */
export class StreamCall implements AbortReceiver, BodyReceiver, ViewedCall {
  readonly view: HandlerContext;
  ended: unknown;
  readonly #exchange: Exchange;
  readonly #procedure: StreamProcedure;
  readonly #protocol: StreamProtocol;
  readonly #owner: CallOwner;
  readonly #controller = new AbortController();
  #heart: Heart | undefined;
  #stopDeadline: (() => void) | undefined;
  #ignoreShutdown: (() => void) | undefined;
  /** Set until the header is final. */
  #header: Headers | undefined;
  #headerFields: HeaderFields = [];
  #trailer: Headers;
  #messages: AsyncIterator<unknown> | undefined;
  #output: YieldedMessages | undefined;
  /** Encoded messages that wait for the end of the turn. */
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #begun = false;
  #flushing = false;
  /** Whether the client takes no more for now. */
  #blocked = false;
  /** Whether the handler is asked for its next message once there is room. */
  #waiting = false;
  #done = false;

  constructor({ exchange, procedure, protocol, values, owner }: StreamCallInit) {
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#protocol = protocol;
    this.#owner = owner;
    this.#header = protocol.responseHeader;
    this.#trailer = protocol.responseTrailer;
    const { timeoutMs } = protocol;
    const deadlineMs = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
    this.view = {
      service: procedure.method.parent,
      method: procedure.method,
      protocolName: protocol.protocol,
      requestMethod: exchange.httpMethod,
      url: exchange.origin + exchange.target,
      signal: this.signal,
      timeoutMs: () => (deadlineMs === undefined ? undefined : deadlineMs - Date.now()),
      requestHeader: protocol.requestHeader,
      responseHeader: protocol.responseHeader,
      responseTrailer: protocol.responseTrailer,
      values,
    };
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts the call and returns at once; every failure ends up in its answer. */
  start(): void {
    const { problem, timeoutMs } = this.#protocol;
    const { shutdownSignal, requestGate } = this.#procedure.options;
    if (this.#exchange.gone) return this.aborted(goneAway());
    this.#exchange.abortReceiver = this;
    if (shutdownSignal !== undefined) this.#heedShutdown(shutdownSignal);
    if (problem !== undefined) return this.#fail(problem);
    if (timeoutMs !== undefined) {
      if (timeoutMs <= 0) return this.#expire();
      this.#stopDeadline = startDeadline(timeoutMs, () => this.#expire());
    }
    if (this.#protocol.heartbeat !== undefined) {
      this.#heart = startHeart(heartbeatMs, () => this.#beat());
    }
    if (requestGate === undefined) return this.#read();
    const asked = (async () => await requestGate(this.view))();
    asked.then(() => {
      if (!this.#done) this.#read();
    }, this.#onError);
  }

  #read(): void {
    if (this.#procedure.method.methodKind !== "server_streaming") this.#invoke(this.#protocol.readMessages());
    else if (this.#exchange.bodyEmpty) this.received(new Uint8Array(0));
    else this.#exchange.readBody(this.#protocol.bodyLimitBytes, this);
  }

  announcedBytes(firstPiece: Uint8Array): number {
    return this.#protocol.announcedBytes?.(firstPiece) ?? 0;
  }

  received(body: Uint8Array | undefined): void {
    if (body === undefined) return this.#fail(messageTooLarge(this.#procedure.options.readMaxBytes));
    (async () => await this.#protocol.readMessage(body))().then((message) => {
      if (!this.#done) this.#invoke(single(message));
    }, this.#onError);
  }

  #invoke(message: AsyncIterable<Message>): void {
    const { service, requestMethod, url, signal, requestHeader: header, values: contextValues } = this.view;
    const { method } = this.#procedure;
    const about = { service, method, requestMethod, url, signal, header, contextValues };
    const request: StreamRequest & { readonly call: ViewedCall } = { ...about, stream: true, message, call: this };
    (async () => this.#answer(await this.#procedure.invoke(request)))().catch(this.#onError);
  }

  #answer({ header, trailer, message }: StreamResponse): void {
    this.#output = message instanceof YieldedMessages ? message : undefined;
    const messages = (this.#output?.source ?? message)[Symbol.asyncIterator]();
    if (this.#done) return letGo(messages);
    this.#header = header;
    this.#trailer = trailer;
    this.#messages = messages;
    this.#pull();
  }

  #pull(): void {
    this.#waiting = false;
    if (this.#messages === undefined) return;
    try {
      // An unchecked iterator may throw synchronously, or return something other than a promise.
      Promise.resolve(this.#messages.next()).then(this.#onNext, this.#onError);
    } catch (error) {
      this.#onError(error);
    }
  }

  readonly #onError = (error: unknown): void => this.#fail(toConnectError(error));

  readonly #onNext = (result: IteratorResult<unknown>): void => {
    if (this.#done) return;
    try {
      if (result.done === true) {
        this.#messages = undefined;
        return this.#succeed();
      }
      const message = result.value as Message;
      const bytes = this.#protocol.encode(this.#output === undefined ? message : this.#output.toMessage(message));
      if (!isPromise(bytes)) return this.#add(bytes);
      bytes.then((packed) => this.#add(packed)).catch(this.#onFault);
    } catch (error) {
      this.#onFault(error);
    }
  };

  /** The answer cannot be written: the client learns that, but not why. */
  readonly #onFault = (error: unknown): void => {
    this.#owner.faulted(error);
    this.#fail(toConnectError(error));
  };

  #add(bytes: Uint8Array): void {
    if (this.#done) return;
    this.#settleHeader();
    if (this.#protocol.headOnly === true) return this.#succeed();
    this.#heart?.restart();
    this.#pieces.push(bytes);
    this.#pieceBytes += bytes.byteLength;
    // The only message of its answer is sent together with the end.
    if (this.#procedure.method.methodKind === "client_streaming") return this.#pull();
    if (!this.#flushing) {
      this.#flushing = true;
      afterTurn(flushCall, this);
    }
    if (this.#blocked || this.#pieceBytes >= collectedBytesMax) this.#waiting = true;
    else this.#pull();
  }

  /** Sends a sign of life to the client and the proxies before it, if nothing else is being sent. */
  #beat(): void {
    const { heartbeat } = this.#protocol;
    if (heartbeat === undefined || this.#blocked || this.#flushing) return;
    this.#pieces.push(heartbeat);
    this.#pieceBytes += heartbeat.byteLength;
    this.flush();
  }

  /** Sends what was collected in this turn. */
  flush(): void {
    this.#flushing = false;
    if (this.#done) return;
    try {
      this.#send();
    } catch (error) {
      return this.#onFault(error);
    }
    if (this.#waiting && !this.#blocked) this.#pull();
  }

  #send(): void {
    if (!this.#begun) {
      this.#settleHeader();
      this.#protocol.begin(this.#headerFields);
      this.#begun = true;
    }
    if (this.#pieces.length === 0) return;
    const written = this.#protocol.write(this.#takePieces());
    if (!isPromise(written)) return;
    this.#blocked = true;
    const resume = (): void => {
      this.#blocked = false;
      if (!this.#done && this.#waiting) this.#pull();
    };
    // If the client goes away, {@link aborted} is called.
    written.then(resume, () => undefined);
  }

  /** Fixes the header, which handlers may change up to their first message. */
  #settleHeader(): void {
    if (this.#header !== undefined) this.#headerFields = this.#protocol.headerToSend(this.#header);
    this.#header = undefined;
  }

  #takePieces(): Uint8Array {
    const [first = new Uint8Array(0)] = this.#pieces;
    const bytes = this.#pieces.length < 2 ? first : concatBytes(this.#pieces);
    this.#pieces = [];
    this.#pieceBytes = 0;
    return bytes;
  }

  #succeed(): void {
    try {
      this.#close(this.#trailer, undefined);
    } catch (error) {
      return this.#onFault(error);
    }
    this.#settle(undefined);
  }

  /** Sends what was collected, and the end. */
  #close(trailer: Headers, error: ConnectError | undefined): void {
    this.#settleHeader();
    if (!this.#begun) return this.#protocol.answer(this.#headerFields, this.#takePieces(), trailer, error);
    this.#send();
    this.#protocol.end(trailer, error);
  }

  #fail(error: ConnectError): void {
    if (this.#done) return;
    this.#end(error);
    this.#owner.failing(error);
    try {
      this.#close(this.#protocol.responseTrailer, error);
    } catch (fault) {
      // The error cannot be written, for example because its details do not serialize.
      this.#exchange.reset();
      this.#protocol.release?.();
      this.#owner.faulted(fault);
    }
    this.#owner.settled(error);
  }

  #expire(): void {
    this.#fail(new ConnectError("the operation timed out", Code.DeadlineExceeded));
  }

  aborted(reason: ConnectError): void {
    if (!this.#done) this.#protocol.release?.();
    this.#settle(reason);
  }

  #heedShutdown(shutdown: AbortSignal): void {
    const abort = (): void => this.#controller.abort(shutdown.reason);
    if (shutdown.aborted) return abort();
    shutdown.addEventListener("abort", abort);
    this.#ignoreShutdown = () => shutdown.removeEventListener("abort", abort);
  }

  #settle(error: ConnectError | undefined): void {
    if (this.#done) return;
    this.#end(error);
    this.#owner.settled(error);
  }

  #end(error: ConnectError | undefined): void {
    this.#done = true;
    this.#exchange.abortReceiver = undefined;
    this.#stopDeadline?.();
    this.#heart?.stop();
    this.#ignoreShutdown?.();
    this.ended = error ?? completed;
    this.#controller.abort(this.ended);
    if (this.#messages !== undefined) letGo(this.#messages);
    this.#messages = undefined;
  }
}

function flushCall(call: StreamCall): void {
  call.flush();
}

/** Ends an iterator early. Not awaited, so that a stuck handler cannot hold the answer back. */
function letGo(messages: AsyncIterator<unknown>): void {
  (async () => await messages.return?.())().catch(() => undefined);
}

async function* single(message: Message): AsyncGenerator<Message> {
  yield message;
}
