import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError, type ContextValues, type HandlerContext } from "@connectrpc/connect";
import { codedError } from "../errors/index.ts";
import {
  type AbortReceiver,
  type BodyReceiver,
  type Exchange,
  HttpProblem,
  noBytes,
  startDeadline,
} from "../carriers/index.ts";
import {
  type CallProtocol,
  goneAway,
  httpError,
  type LazyHeaders,
  messageTooLarge,
  type Procedure,
} from "../protocols/index.ts";
import { completed, toConnectError, toFault } from "./call-error.ts";
import { unserved, unwritten } from "./faults.ts";
import type { AdmitRequest } from "./hooks.ts";

/** The request that a call is of: learns how it ended, and decides which error answers a failure. */
export interface CallOwner extends AdmitRequest {
  /** Returns the error to answer with for what a handler or an interceptor has thrown. */
  toError(thrown: unknown, context: HandlerContext): ConnectError;
  /** Called once: with `undefined` when the answer is a message, otherwise with the error. */
  settled(error: ConnectError | undefined): void;
  /** Called before an error is answered; reports the fault behind it, if there is one. */
  failing(error: ConnectError): void;
  /** Called when an error cannot be written. */
  faulted(error: unknown): void;
}

/** Options of a {@link Call}. */
export interface CallInit<P extends Procedure, W extends CallProtocol> {
  readonly exchange: Exchange;
  readonly procedure: P;
  readonly protocol: W;
  readonly values: ContextValues;
  readonly owner: CallOwner;
  /** Milliseconds until the deadline; `undefined` for none. */
  readonly timeoutMs: number | undefined;
}

/**
 * The life of one call, from its admitted header to its answer: what unary and streaming calls have in common.
 *
 * It is settled by whichever comes first: the answer, the deadline, or the client going away. Handlers and interceptors
 * see Connect's own types; the parts that they seldom use are built on first use.
 */
export abstract class Call<P extends Procedure, W extends CallProtocol> implements AbortReceiver, BodyReceiver {
  readonly view: CallView;
  readonly owner: CallOwner;
  /** Why {@link signal} aborted, or would have if it had been read; `undefined` until then. */
  ended: unknown;
  /** Is told of that, as the listeners of {@link signal} are. */
  endListener: { handleEvent(): void } | undefined;
  protected done = false;
  protected readonly exchange: Exchange;
  protected readonly procedure: P;
  protected readonly protocol: W;
  readonly #timeoutMs: number | undefined;
  #controller: AbortController | undefined;
  #stopDeadline: (() => void) | undefined;
  #ignoreShutdown: (() => void) | undefined;

  constructor(init: CallInit<P, W>) {
    this.exchange = init.exchange;
    this.procedure = init.procedure;
    this.protocol = init.protocol;
    this.owner = init.owner;
    this.#timeoutMs = init.timeoutMs;
    this.view = new CallView(this, init);
  }

  /** Aborts when the call ends, however it ends, or when the server shuts down. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.ended !== undefined) this.#controller.abort(this.ended);
    }
    return this.#controller.signal;
  }

  /** Starts the call and returns at once; every failure ends up in its answer. */
  start(): void {
    const { problem } = this.protocol;
    const { shutdownSignal, requestGate } = this.procedure.options;
    if (this.exchange.aborted) return this.#abandon(goneAway());
    this.exchange.abortReceiver = this;
    if (shutdownSignal !== undefined) this.#heedShutdown(shutdownSignal);
    if (problem !== undefined) return this.fail(problem);
    const timeoutMs = this.#timeoutMs;
    if (timeoutMs === 0) return this.#expire();
    // Rounded up, because less than a millisecond is still some time.
    if (timeoutMs !== undefined) this.#stopDeadline = startDeadline(Math.ceil(timeoutMs), () => this.#expire());
    if (requestGate === undefined) this.#startRead();
    else this.#pass(requestGate);
  }

  #startRead(): void {
    try {
      this.read();
    } catch (error) {
      // The program has read the body before.
      this.fail(error instanceof HttpProblem ? httpError(error) : error);
    }
  }

  /** Calls the user's request gate, which Connect runs before the body is read. */
  #pass(gate: NonNullable<Procedure["options"]["requestGate"]>): void {
    const asked = (async () => await gate(this.view))();
    asked.then(
      () => {
        if (!this.done) this.#startRead();
      },
      (error: unknown) => this.fail(error),
    );
  }

  /** Reads the request: here one message, from the head or the body. */
  protected read(): void {
    const { message } = this.protocol;
    if (message !== undefined) this.invoke(message);
    else if (this.exchange.body === undefined || this.protocol.ignoresBody === true) this.received(noBytes);
    else this.exchange.body.read(this.protocol.bodyLimitBytes, this);
  }

  get isUnseen(): boolean {
    return this.protocol.isUnseen === true;
  }

  announcedBytes(firstPiece: Uint8Array): number {
    return this.protocol.announcedBytes?.(firstPiece) ?? 0;
  }

  received(body: Uint8Array | undefined): void {
    if (body === undefined) return this.fail(messageTooLarge(this.procedure.options.readMaxBytes));
    let message: Message | Promise<Message>;
    try {
      message = this.protocol.readMessage(body);
    } catch (error) {
      return this.fail(error);
    }
    // Only compressed messages have to be waited for; for all others a promise would be a waste.
    if (message instanceof Promise)
      message.then(
        (plain) => this.invoke(plain),
        (error: unknown) => this.fail(error),
      );
    else this.invoke(message);
  }

  /** Calls the interceptors and the handler with the client's only message. The call may have ended meanwhile. */
  protected abstract invoke(message: Message): void;

  /** Answers with an error. Called once more if that takes too long: then it is not coded, or the answer breaks off. */
  protected abstract writeError(error: ConnectError): void | Promise<void>;

  /** Milliseconds until {@link writeError} is called again: far more than what gzip takes for a megabyte. */
  protected get errorCodingMsMax(): number {
    return 1000;
  }

  /** Ends the call with an answer that was written, or without any. */
  protected settle(error: ConnectError | undefined): void {
    // Writing an answer may end its stream, which reports back before this runs.
    if (this.done) return;
    this.end(error);
    this.owner.settled(error);
  }

  /**
   * Returns a header or trailer as it is sent: the call's own, or a copy of what an interceptor has put in its place.
   *
   * @throws TypeError for what is no list of fields, or has a name that no field may have (RFC 9110 §5.1)
   */
  protected toSend(given: Headers, own: LazyHeaders): Headers {
    return given === own ? own : new Headers([...given]);
  }

  /** Ends the call as a success once its answer is written, which takes time only if it is compressed. */
  protected succeed(written: void | Promise<void>): void {
    if (!(written instanceof Promise)) return this.settle(undefined);
    // What comes while the answer is being coded, or because that has failed, is an error, and sent at once.
    this.protocol.giveUpCoding?.();
    written.then(
      () => this.settle(undefined),
      (error: unknown) => this.failToWrite(error),
    );
  }

  /** Ends the call because its answer cannot be written: the client learns that, but not why. */
  protected failToWrite(error: unknown): void {
    if (!this.done) this.fail(toFault(error, unwritten));
  }

  /** Ends the call with the error for what its handler or an interceptor has thrown. */
  protected failHandling(thrown: unknown): void {
    if (!this.done) this.fail(this.owner.toError(thrown, this.view));
  }

  /** Ends the call, and answers with an error. */
  protected fail(thrown: unknown): void {
    if (this.done) return;
    const error = toConnectError(thrown, unserved);
    this.end(error);
    this.owner.failing(error);
    // The error cannot be written, for example because its details do not serialize.
    const giveUp = (fault: unknown): void => {
      this.exchange.reset();
      this.protocol.release?.();
      this.owner.faulted(fault);
    };
    let written: void | Promise<void> = undefined;
    try {
      written = this.writeError(error);
    } catch (fault) {
      giveUp(fault);
    }
    // Settled after writing, so that the owner can read the status of the answer.
    if (!(written instanceof Promise)) return this.owner.settled(error);
    // A coding of the program's own may never end, and no deadline and no client ends this call any more.
    const late = Promise.withResolvers<void>();
    const stop = startDeadline(this.errorCodingMsMax, late.resolve);
    const uncoded = late.promise.then(() => {
      this.protocol.giveUpCoding?.();
      return this.writeError(error);
    });
    void Promise.race([written, uncoded])
      .catch(giveUp)
      .then(() => this.owner.settled(error))
      .finally(stop);
  }

  #expire(): void {
    this.fail(codedError("ERR_DEADLINE_EXCEEDED", "the operation timed out", Code.DeadlineExceeded));
  }

  aborted(problem: HttpProblem): void {
    this.#abandon(httpError(problem));
  }

  #abandon(reason: ConnectError): void {
    if (!this.done) this.protocol.release?.();
    this.settle(reason);
  }

  /** Aborts the signal when the server shuts down: a handler that heeds it stops early, any other may still finish. */
  #heedShutdown(shutdown: AbortSignal): void {
    const abort = (): void => this.#abort(shutdown.reason);
    if (shutdown.aborted) return abort();
    shutdown.addEventListener("abort", abort);
    this.#ignoreShutdown = () => shutdown.removeEventListener("abort", abort);
  }

  /** Releases what the call holds. */
  protected end(error: ConnectError | undefined): void {
    this.done = true;
    this.exchange.abortReceiver = undefined;
    this.#stopDeadline?.();
    this.#ignoreShutdown?.();
    // Connect aborts the signal of every call that has ended, so that what depends on it is released.
    this.#abort(error ?? completed);
  }

  #abort(reason: unknown): void {
    this.ended ??= reason;
    this.#controller?.abort(reason);
    this.endListener?.handleEvent();
  }
}

type AnyCall = Call<Procedure, CallProtocol>;

/**
 * A call as its interceptors and its handler see it: Connect's `UnaryRequest` or `StreamRequest`, and `HandlerContext`.
 *
 * Both in one object, which costs half as much as two. Every member is an own property, so that both can be spread;
 * header and signal are built when they are first used.
 */
export class CallView implements HandlerContext {
  readonly stream: boolean;
  readonly service: HandlerContext["service"];
  readonly method: HandlerContext["method"];
  readonly requestMethod: string;
  readonly url: string;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  /** The message that the client sent, or the stream of them; before it is read, a message without a type. */
  message: Message | AsyncIterable<Message> = unread;
  readonly protocolName: string;
  readonly requestHeader: Headers;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;
  readonly values: ContextValues;
  readonly timeoutMs: () => number | undefined;
  declare readonly signal: AbortSignal;
  /** The call itself. An own property, so that spread copies of a request have it too. */
  readonly call: AnyCall;

  constructor(call: AnyCall, { exchange, procedure, protocol, values, timeoutMs }: CallInit<Procedure, CallProtocol>) {
    const { method } = procedure;
    this.stream = procedure.kind === "stream";
    this.service = method.parent;
    this.method = method;
    this.requestMethod = exchange.httpMethod;
    this.url = exchange.url;
    this.header = protocol.requestHeader;
    this.contextValues = values;
    this.protocolName = protocol.protocol;
    this.requestHeader = this.header;
    this.responseHeader = protocol.responseHeader;
    this.responseTrailer = protocol.responseTrailer;
    this.values = values;
    this.timeoutMs = timeoutMs === undefined ? noTimeout : timeLeft(performance.now() + timeoutMs);
    this.call = call;
    Object.defineProperty(this, "signal", signalDescriptor);
  }
}

const unread: Message = { $typeName: "" };

// One descriptor for all, so that V8 gives all the objects one shape.
const signalDescriptor: PropertyDescriptor & ThisType<CallView> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.call.signal;
  },
};

function noTimeout(): undefined {}

// Whole, as the header of calls that a handler makes must have it; rounded down, so that these do not outlive this one.
function timeLeft(deadlineMs: number): () => number {
  return () => Math.floor(deadlineMs - performance.now());
}
