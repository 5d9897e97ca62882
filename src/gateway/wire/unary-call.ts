import type { Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  type HandlerContext,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { CallView } from "./call-view.ts";
import { messageTooLarge } from "./compression.ts";
import type { AbortListener, BodyReceiver, Exchange } from "./exchange.ts";
import { goneAway } from "./gone-away.ts";
import type { Invocation, Procedure, UnaryProcedure } from "./procedure.ts";
import { wellFormed } from "./refuse.ts";
import { startDeadline } from "./timeout.ts";
import type { UnaryWire } from "./unary-wire.ts";

/** Who is told how a call ended. */
export interface CallOwner {
  /** Called once: with nothing when the answer is a message, else with the error. */
  settled(error: ConnectError | undefined): void;
}

/** What a {@link UnaryCall} is made of. */
export interface UnaryCallInit {
  readonly exchange: Exchange;
  readonly procedure: Procedure;
  readonly unary: UnaryProcedure;
  readonly wire: UnaryWire;
  readonly values: ContextValues;
  readonly owner: CallOwner;
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
export class UnaryCall implements AbortListener, BodyReceiver, Invocation {
  readonly #exchange: Exchange;
  readonly #procedure: Procedure;
  readonly #unary: UnaryProcedure;
  readonly #wire: UnaryWire;
  readonly #timeoutMs: number | undefined;
  readonly #owner: CallOwner;
  readonly #view: CallView;
  #controller: AbortController | undefined;
  #stopDeadline: (() => void) | undefined;
  #ignoreShutdown: (() => void) | undefined;
  #done = false;
  /** Why the signal is, or would be, aborted. */
  #ended: unknown;

  constructor({ exchange, procedure, unary, wire, values, owner, defaultTimeoutMs }: UnaryCallInit) {
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#unary = unary;
    this.#wire = wire;
    this.#owner = owner;
    const timeoutMs = wire.timeoutMs ?? (defaultTimeoutMs > 0 ? defaultTimeoutMs : undefined);
    this.#timeoutMs = timeoutMs;
    this.#view = new CallView(this, { exchange, unary, wire, values, timeoutMs });
  }

  /** Built when first asked for: few handlers do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#ended !== undefined) this.#controller.abort(this.#ended);
    }
    return this.#controller.signal;
  }

  get abortReason(): unknown {
    return this.#ended;
  }

  /** Runs the call. Returns at once; everything that can go wrong ends up in its answer. */
  start(): void {
    const { problem } = this.#wire;
    const timeoutMs = this.#timeoutMs;
    if (this.#exchange.gone) return this.aborted(goneAway());
    this.#exchange.listener = this;
    const { shutdownSignal } = this.#procedure.options;
    if (shutdownSignal !== undefined) this.#heedShutdown(shutdownSignal);
    if (problem !== undefined) return this.#fail(problem);
    if (timeoutMs !== undefined) {
      if (timeoutMs <= 0) return this.#expire();
      this.#stopDeadline = startDeadline(timeoutMs, () => this.#expire());
    }
    const gate = this.#procedure.options.requestGate;
    if (gate === undefined) this.#readBody();
    else this.#pass(gate);
  }

  createRequest(message: Message): UnaryRequest {
    return this.#view.withMessage(message);
  }

  contextFor(request: UnaryRequest): HandlerContext {
    if (this.#ended !== undefined) throw this.#ended;
    const view = this.#view;
    if (request === view) return view;
    const { header, signal, contextValues } = request;
    if (signal.aborted) throw signal.reason;
    return Object.assign({}, view, { requestHeader: header, signal, values: contextValues });
  }

  /** Asks the user's gate, which Connect runs before the body is read. */
  #pass(gate: NonNullable<Procedure["options"]["requestGate"]>): void {
    const asked = (async () => await gate(this.#view))();
    asked.then(
      () => {
        if (!this.#done) this.#readBody();
      },
      (error: unknown) => this.#fail(toConnectError(error)),
    );
  }

  #readBody(): void {
    this.#exchange.readBody(this.#wire.bodyLimitBytes, this);
  }

  received(body: Uint8Array | undefined): void {
    if (this.#done) return;
    if (body === undefined) return this.#fail(messageTooLarge(this.#procedure.options.readMaxBytes));
    let message: Message | Promise<Message>;
    try {
      message = this.#wire.readMessage(body);
    } catch (error) {
      return this.#fail(toConnectError(error));
    }
    // No promise where the value is at hand: only what is compressed has to be waited for.
    if (isPromise(message))
      message.then(
        (plain) => this.#invoke(plain),
        (error: unknown) => this.#fail(toConnectError(error)),
      );
    else this.#invoke(message);
  }

  #invoke(message: Message): void {
    if (this.#done) return;
    let response: Promise<UnaryResponse>;
    try {
      // An interceptor that has no types to hold it may return anything.
      response = Promise.resolve(this.#unary.invoke(this, message));
    } catch (error) {
      return this.#fail(toConnectError(error));
    }
    response.then(
      (answer) => this.#succeed(answer),
      (error: unknown) => this.#fail(toConnectError(error)),
    );
  }

  #succeed(response: UnaryResponse): void {
    if (this.#done) return;
    let written: void | Promise<void>;
    try {
      written = this.#wire.writeMessage(response);
    } catch (error) {
      return this.#fail(toConnectError(error));
    }
    if (isPromise(written))
      written.then(
        () => this.#settle(undefined),
        (error: unknown) => this.#fail(toConnectError(error)),
      );
    else this.#settle(undefined);
  }

  #fail(error: ConnectError): void {
    if (this.#done) return;
    const { responseHeader, responseTrailer } = this.#view;
    this.#end(error);
    let written: void | Promise<void> = undefined;
    try {
      written = this.#wire.writeError(error, responseHeader, responseTrailer);
    } catch {
      // An error that cannot be written, such as one whose details do not serialize.
      this.#exchange.reset();
    }
    // Settled once it is written: who is told of the answer is told its status.
    if (isPromise(written)) void written.catch(() => this.#exchange.reset()).then(() => this.#owner.settled(error));
    else this.#owner.settled(error);
  }

  #expire(): void {
    this.#fail(new ConnectError("the operation timed out", Code.DeadlineExceeded));
  }

  aborted(reason: ConnectError): void {
    if (!this.#done) this.#settle(reason);
  }

  /** Aborts the signal with the server's: a handler that honours it winds up, one that does not may still finish. */
  #heedShutdown(shutdown: AbortSignal): void {
    const abort = (): void => this.#abort(shutdown.reason);
    if (shutdown.aborted) return abort();
    shutdown.addEventListener("abort", abort);
    this.#ignoreShutdown = () => shutdown.removeEventListener("abort", abort);
  }

  #settle(error: ConnectError | undefined): void {
    this.#end(error);
    this.#owner.settled(error);
  }

  #end(error: ConnectError | undefined): void {
    this.#done = true;
    this.#exchange.listener = undefined;
    this.#stopDeadline?.();
    this.#ignoreShutdown?.();
    // Connect aborts the signal of every call that has ended, so that what hangs on it is let go.
    this.#abort(error ?? completed);
  }

  #abort(reason: unknown): void {
    if (this.#ended === undefined) this.#ended = reason;
    this.#controller?.abort(reason);
  }
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
