import type { Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  type HandlerContext,
  type StreamRequest,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { messageTooLarge } from "./compression.ts";
import type { Exchange } from "./exchange.ts";
import { goneAway } from "./gone-away.ts";
import { LazyHeaders } from "./header-fields.ts";
import type { Procedure, UnaryProcedure } from "./procedure.ts";
import { wellFormed } from "./refuse.ts";
import { startDeadline } from "./timeout.ts";
import type { UnaryWire } from "./unary-wire.ts";

// Under this key requests and contexts know their call, spread copies included.
const callKey: unique symbol = Symbol("call");

interface WithCall {
  readonly [callKey]: UnaryCall;
}

/** What a {@link UnaryCall} is made of. */
export interface UnaryCallInit {
  readonly exchange: Exchange;
  readonly procedure: Procedure;
  readonly unary: UnaryProcedure;
  readonly wire: UnaryWire;
  readonly values: ContextValues;
  /** Called once: with nothing when the answer is a message, else with the error. */
  readonly settled: (error: ConnectError | undefined) => void;
  /** Milliseconds for a call whose client names no deadline; 0 for no bound. */
  readonly defaultTimeoutMs: number;
}

/**
 * One unary call, from its admitted header to its answer.
 *
 * body → message → interceptors → handler → message → answer, with whichever comes first of the
 * answer, the deadline and the client's going away settling it. Handlers and interceptors see
 * Connect's own types; what they seldom look at is built when they do.
 */
export class UnaryCall {
  readonly #exchange: Exchange;
  readonly #procedure: Procedure;
  readonly #unary: UnaryProcedure;
  readonly #wire: UnaryWire;
  readonly #timeoutMs: number | undefined;
  readonly #settled: (error: ConnectError | undefined) => void;
  readonly #context: CallContext;
  #controller: AbortController | undefined;
  #stopDeadline: (() => void) | undefined;
  #done = false;
  #request: UnaryRequest | undefined;
  /** Why the signal is, or would be, aborted. */
  #ended: unknown;

  constructor({ exchange, procedure, unary, wire, values, settled, defaultTimeoutMs }: UnaryCallInit) {
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#unary = unary;
    this.#wire = wire;
    this.#settled = settled;
    const timeoutMs = wire.timeoutMs ?? (defaultTimeoutMs > 0 ? defaultTimeoutMs : undefined);
    this.#timeoutMs = timeoutMs;
    this.#context = createContext(this, unary, wire, exchange, values, timeoutMs);
  }

  /** Aborts when the call ends, however it ends. Built when first asked for: few handlers do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#ended !== undefined) this.#controller.abort(this.#ended);
    }
    return this.#controller.signal;
  }

  /** Runs the call. Returns at once; everything that can go wrong ends up in its answer. */
  start(): void {
    const { problem } = this.#wire;
    const timeoutMs = this.#timeoutMs;
    if (this.#exchange.gone) return this.#cancel(goneAway());
    this.#exchange.aborted = (reason) => this.#cancel(reason);
    const { shutdownSignal } = this.#procedure.options;
    if (shutdownSignal?.aborted === true) this.#shutDown();
    else shutdownSignal?.addEventListener("abort", this.#shutDown);
    if (problem !== undefined) return this.#fail(problem);
    if (timeoutMs !== undefined) {
      if (timeoutMs <= 0) return this.#expire();
      this.#stopDeadline = startDeadline(timeoutMs, () => this.#expire());
    }
    const gate = this.#procedure.options.requestGate;
    if (gate === undefined) this.#readBody();
    else
      this.#attempt(
        () => gate(this.#context),
        () => this.#readBody(),
      );
  }

  /** Presents the call to the interceptors. */
  createRequest(message: Message): UnaryRequest {
    return (this.#request = new CallRequest(this, this.#unary, this.#context, message));
  }

  /**
   * The context for the handler, with whatever an interceptor has put in place of the original.
   *
   * @throws what the call was cancelled with: it has nobody to run for any more
   */
  contextFor(request: UnaryRequest): HandlerContext {
    if (this.#ended !== undefined) throw this.#ended;
    const context = this.#context;
    if (request === this.#request) return context;
    const { header, signal, contextValues } = request;
    if (signal.aborted) throw signal.reason;
    return { ...context, requestHeader: header, signal, values: contextValues };
  }

  #readBody(): void {
    const { bodyLimitBytes } = this.#wire;
    this.#exchange.readBody(bodyLimitBytes, (body) => {
      if (this.#done) return;
      if (body === undefined) this.#fail(messageTooLarge(this.#procedure.options.readMaxBytes));
      else
        this.#attempt(
          () => this.#wire.readMessage(body),
          (message) => this.#invoke(message),
        );
    });
  }

  #invoke(message: Message): void {
    this.#attempt(
      () => this.#unary.invoke(this, message),
      (response) => this.#succeed(response),
    );
  }

  #succeed(response: UnaryResponse): void {
    this.#attempt(
      () => this.#wire.writeMessage(response),
      () => this.#settle(undefined),
    );
  }

  /** Goes on with the value of `step`, at once if it is at hand, unless the call has settled meanwhile. */
  #attempt<T>(step: () => T | Promise<T>, next: (value: T) => void): void {
    let value: T | Promise<T>;
    try {
      value = step();
    } catch (error) {
      return this.#fail(toConnectError(error));
    }
    if (!isPromise(value)) return next(value);
    value.then(
      (settled) => {
        if (!this.#done) next(settled);
      },
      (error: unknown) => this.#fail(toConnectError(error)),
    );
  }

  #fail(error: ConnectError): void {
    if (this.#done) return;
    const { responseHeader, responseTrailer } = this.#context;
    this.#end(error);
    let written: void | Promise<void> = undefined;
    try {
      written = this.#wire.writeError(error, responseHeader, responseTrailer);
    } catch {
      // An error that cannot be written, such as one whose details do not serialize.
      this.#exchange.reset();
    }
    // Settled once it is written: who is told of the answer is told its status.
    if (isPromise(written)) void written.catch(() => this.#exchange.reset()).then(() => this.#settled(error));
    else this.#settled(error);
  }

  #expire(): void {
    this.#fail(new ConnectError("the operation timed out", Code.DeadlineExceeded));
  }

  #cancel(reason: ConnectError): void {
    if (!this.#done) this.#settle(reason);
  }

  // A handler that honours its signal winds up by itself; one that does not may still finish.
  readonly #shutDown = (): void => {
    this.#abort(this.#procedure.options.shutdownSignal?.reason);
  };

  #settle(error: ConnectError | undefined): void {
    this.#end(error);
    this.#settled(error);
  }

  #end(error: ConnectError | undefined): void {
    this.#done = true;
    this.#exchange.aborted = undefined;
    this.#stopDeadline?.();
    this.#procedure.options.shutdownSignal?.removeEventListener("abort", this.#shutDown);
    // Connect aborts the signal of every call that has ended, so that what hangs on it is let go.
    this.#abort(error ?? completed);
  }

  #abort(reason: unknown): void {
    this.#ended ??= reason;
    this.#controller?.abort(reason);
  }
}

type CallContext = HandlerContext & { readonly responseHeader: LazyHeaders; readonly responseTrailer: LazyHeaders };

function createContext(
  call: UnaryCall,
  { method }: UnaryProcedure,
  wire: UnaryWire,
  exchange: Exchange,
  values: ContextValues,
  timeoutMs: number | undefined,
): CallContext {
  const deadline = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
  const context: Omit<CallContext, "signal"> & WithCall = {
    service: method.parent,
    method,
    protocolName: wire.protocol,
    requestMethod: exchange.httpMethod,
    url: exchange.origin + exchange.target,
    timeoutMs: () => (deadline === undefined ? undefined : deadline - Date.now()),
    requestHeader: new LazyHeaders(exchange.fields),
    responseHeader: new LazyHeaders(wire.headerFields),
    responseTrailer: new LazyHeaders(wire.trailerFields),
    values,
    [callKey]: call,
  };
  return withSignal(context);
}

/** A request as the interceptors of its call see it. Everything is its own property, so it can be spread. */
class CallRequest implements WithCall {
  readonly stream = false;
  readonly service: UnaryRequest["service"];
  readonly method: UnaryRequest["method"];
  readonly requestMethod: string;
  readonly url: string;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  readonly message: Message;
  declare readonly signal: AbortSignal;
  readonly [callKey]: UnaryCall;

  constructor(call: UnaryCall, { method }: UnaryProcedure, context: CallContext, message: Message) {
    this.service = context.service;
    this.method = method;
    this.requestMethod = context.requestMethod;
    this.url = context.url;
    this.header = context.requestHeader;
    this.contextValues = context.values;
    this.message = message;
    this[callKey] = call;
    withSignal(this);
  }
}

// One descriptor for all: V8 then gives all the objects one shape, and this costs a tenth of an AbortController.
const signalDescriptor: PropertyDescriptor & ThisType<WithCall> = {
  enumerable: true,
  configurable: true,
  get() {
    return this[callKey].signal;
  },
};

function withSignal<T extends WithCall>(target: T): T & { readonly signal: AbortSignal } {
  return Object.defineProperty(target, "signal", signalDescriptor) as T & { readonly signal: AbortSignal };
}

/**
 * The call that a request, as an interceptor passes it on, belongs to.
 *
 * @throws ConnectError `Internal` for a request that an interceptor made up instead of spreading its own
 */
export function callOf(request: UnaryRequest | StreamRequest): UnaryCall {
  const call = (request as Partial<WithCall>)[callKey];
  if (call !== undefined) return call;
  throw new ConnectError("an interceptor passed on a request that is not the one it was given", Code.Internal);
}

/** Any thrown value as the error to answer with: what was not thrown as a ConnectError is not for clients. */
export function toConnectError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return wellFormed(thrown);
  return new ConnectError("internal error", Code.Internal, undefined, undefined, thrown);
}

// One for all: making a DOMException costs as much as ten calls' worth of abort.
const completed = new DOMException("This operation was aborted", "AbortError");

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}
