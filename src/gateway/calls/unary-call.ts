import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, type UnaryResponse } from "@connectrpc/connect";
import { CallView, type ViewedCall } from "./call-view.ts";
import { messageTooLarge, type UnaryProcedure, type UnaryProtocol } from "../protocols/index.ts";
import { type AbortReceiver, type BodyReceiver, type Exchange, goneAway, startDeadline } from "../carriers/index.ts";
import { wellFormed } from "./refuse.ts";

/** Told how a call ended. */
export interface CallOwner {
  /** Called once: with `undefined` when the answer is a message, otherwise with the error. */
  settled(error: ConnectError | undefined): void;
  /** Called before an error is answered. */
  failing(error: ConnectError): void;
  /** Called when an answer cannot be written. */
  faulted(error: unknown): void;
}

/** Parts of a {@link UnaryCall}. */
export interface UnaryCallInit {
  readonly exchange: Exchange;
  readonly procedure: UnaryProcedure;
  readonly protocol: UnaryProtocol;
  readonly values: ContextValues;
  readonly owner: CallOwner;
  /** Milliseconds for a call whose client sets no deadline; 0 for no limit. */
  readonly defaultTimeoutMs: number;
}

/**
 * One unary call, from its admitted header to its answer.
 *
 * body → message → interceptors → handler → message → answer. Whichever comes first of the answer, the deadline and the
 * client's leaving settles it. Handlers and interceptors see Connect's own types; the parts that they seldom use are
 * built on first use.
 */
export class UnaryCall implements AbortReceiver, BodyReceiver, ViewedCall {
  readonly view: CallView;
  ended: unknown;
  readonly #exchange: Exchange;
  readonly #procedure: UnaryProcedure;
  readonly #protocol: UnaryProtocol;
  readonly #timeoutMs: number | undefined;
  readonly #owner: CallOwner;
  #controller: AbortController | undefined;
  #stopDeadline: (() => void) | undefined;
  #ignoreShutdown: (() => void) | undefined;
  #done = false;

  constructor({ exchange, procedure, protocol, values, owner, defaultTimeoutMs }: UnaryCallInit) {
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#protocol = protocol;
    this.#owner = owner;
    const timeoutMs = protocol.timeoutMs ?? (defaultTimeoutMs > 0 ? defaultTimeoutMs : undefined);
    this.#timeoutMs = timeoutMs;
    this.view = new CallView(this, { exchange, method: procedure.method, protocol, values, timeoutMs });
  }

  /** Built on first use: few handlers need it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.ended !== undefined) this.#controller.abort(this.ended);
    }
    return this.#controller.signal;
  }

  /** Starts the call and returns at once; every failure ends up in its answer. */
  start(): void {
    const { problem } = this.#protocol;
    const timeoutMs = this.#timeoutMs;
    if (this.#exchange.gone) return this.aborted(goneAway());
    this.#exchange.abortReceiver = this;
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

  /** Calls the user's request gate, which Connect runs before the body is read. */
  #pass(gate: NonNullable<UnaryProcedure["options"]["requestGate"]>): void {
    const asked = (async () => await gate(this.view))();
    asked.then(
      () => {
        if (!this.#done) this.#readBody();
      },
      (error: unknown) => this.#fail(toConnectError(error)),
    );
  }

  #readBody(): void {
    if (this.#exchange.bodyEmpty) this.received(empty);
    else this.#exchange.readBody(this.#protocol.bodyLimitBytes, this);
  }

  announcedBytes(firstPiece: Uint8Array): number {
    return this.#protocol.announcedBytes?.(firstPiece) ?? 0;
  }

  received(body: Uint8Array | undefined): void {
    if (body === undefined) return this.#fail(messageTooLarge(this.#procedure.options.readMaxBytes));
    let message: Message | Promise<Message>;
    try {
      message = this.#protocol.readMessage(body);
    } catch (error) {
      return this.#fail(toConnectError(error));
    }
    // No promise where the value is ready: only compressed messages must be waited for.
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
    this.view.message = message;
    try {
      // An untyped interceptor may return anything.
      response = Promise.resolve(this.#procedure.invoke(this.view));
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
      written = this.#protocol.writeMessage(response);
    } catch (error) {
      return this.#failToWrite(error);
    }
    if (isPromise(written))
      written.then(
        () => this.#settle(undefined),
        (error: unknown) => this.#failToWrite(error),
      );
    else this.#settle(undefined);
  }

  /** The message cannot be written: the client learns that, but not why. */
  #failToWrite(error: unknown): void {
    this.#owner.faulted(error);
    this.#fail(toConnectError(error));
  }

  #fail(error: ConnectError): void {
    if (this.#done) return;
    this.#end(error);
    this.#owner.failing(error);
    // The error cannot be written, for example because its details do not serialize.
    const giveUp = (fault: unknown): void => {
      this.#exchange.reset();
      this.#owner.faulted(fault);
    };
    let written: void | Promise<void> = undefined;
    try {
      written = this.#protocol.writeError(error);
    } catch (fault) {
      giveUp(fault);
    }
    // Settled after writing, so that the owner can read the status of the answer.
    if (isPromise(written)) void written.catch(giveUp).then(() => this.#owner.settled(error));
    else this.#owner.settled(error);
  }

  #expire(): void {
    this.#fail(new ConnectError("the operation timed out", Code.DeadlineExceeded));
  }

  aborted(reason: ConnectError): void {
    this.#settle(reason);
  }

  /** Aborts the signal when the server shuts down: a handler that honours it winds up, another may still finish. */
  #heedShutdown(shutdown: AbortSignal): void {
    const abort = (): void => this.#abort(shutdown.reason);
    if (shutdown.aborted) return abort();
    shutdown.addEventListener("abort", abort);
    this.#ignoreShutdown = () => shutdown.removeEventListener("abort", abort);
  }

  #settle(error: ConnectError | undefined): void {
    // Writing an answer may end its stream, which reports back before this runs.
    if (this.#done) return;
    this.#end(error);
    this.#owner.settled(error);
  }

  #end(error: ConnectError | undefined): void {
    this.#done = true;
    this.#exchange.abortReceiver = undefined;
    this.#stopDeadline?.();
    this.#ignoreShutdown?.();
    // Connect aborts the signal of every call that has ended, so that what depends on it is released.
    this.#abort(error ?? completed);
  }

  #abort(reason: unknown): void {
    if (this.ended === undefined) this.ended = reason;
    this.#controller?.abort(reason);
  }
}

/** Returns the error to answer with for any thrown value; only the text of a ConnectError is meant for clients. */
export function toConnectError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return wellFormed(thrown);
  return new ConnectError("internal error", Code.Internal, undefined, undefined, thrown);
}

const empty = new Uint8Array(0);

/** The reason of every signal whose call went well. Shared, because making a DOMException costs as much as ten aborts. */
export const completed: DOMException = new DOMException("This operation was aborted", "AbortError");

/** Whether a value has to be waited for. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}
