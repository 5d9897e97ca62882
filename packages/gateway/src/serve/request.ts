import type { ConnectError, ContextValues, HandlerContext } from "@connectrpc/connect";
import {
  type AbortReceiver,
  type Exchange,
  type HeaderReader,
  HttpProblem,
  notAdded,
  type Peer,
  readHeaderField,
  startDeadline,
} from "../exchange/index.ts";
import { type Failure, problem } from "../errors/index.ts";
import {
  goneAway,
  httpError,
  type LazyHeaders,
  type Protocol,
  type ProtocolName,
  type Refusal,
  type Rpc,
  type Wire,
} from "../protocols/index.ts";
import { httpStatusOf } from "../protocols/rest/rules/index.ts";
import type { Client } from "../trusted-proxies/index.ts";
import { Answered } from "./answered.ts";
import { completed, takeFault, toConnectError, toFault } from "./to-connect-error.ts";
import { CallValues } from "./context-values.ts";
import type { CallView, EndListener, ViewedRequest } from "./call-view.ts";
import { requestFailed, responseNotWritten } from "./faults.ts";
import { fullPathOf, type Target } from "./routes.ts";
import { refuse } from "./refuse.ts";
import type { Server } from "./server.ts";

/** A call, or what reads the body of a request to find out which call it is. */
export interface AnyCall {
  readonly wire: Pick<Wire, "problem" | "giveUpCoding" | "release">;
  /** Reads the request, after all checks of its header. Throws HttpProblem if the application has consumed the body. */
  read(): void;
  /**
   * Responds with an error. Called a second time when compressing the error takes too long; the second call sends it
   * uncompressed or aborts the response.
   */
  writeError(error: ConnectError): void | Promise<void>;
  /** Milliseconds until {@link writeError} is called again. */
  readonly errorCodingMsMax?: number | undefined;
  /** Called when the request has ended, for any reason. */
  ended?(): void;
}

/** A call as its request sees it. */
export interface ServedCall extends AnyCall {
  readonly wire: Wire;
  readonly view: CallView;
}

/** Milliseconds that the error of a response may take to be compressed: far more than what gzip takes for a megabyte. */
const errorCodingMsMaxDefault = 1000;

/** Returns the exchange of a request. Not a member, because hooks receive the request and must not respond to it. */
export let exchangeOf: (request: ServedRequest) => Exchange;
/** Returns the server of a request. */
export let serverOf: (request: ServedRequest) => Server;

/**
 * One request, from its header to its response: what hooks see of it ({@link AdmitRequest}), and how it ends.
 *
 * It ends once: by its response, its deadline, or when the client goes away. The steps before that are in `serve.ts`.
 */
export class ServedRequest implements ViewedRequest, AbortReceiver {
  static {
    exchangeOf = (request) => request.#exchange;
    serverOf = (request) => request.#server;
  }

  readonly target: Target;
  /** Set later where the body names the RPC. */
  procedure: string | undefined;
  readonly stream: boolean;
  readonly authorization: string | null;
  readonly xRequestId: string | null;
  readonly connection: object;
  contextValues: ContextValues = new CallValues();
  done = false;
  ended: unknown;
  readonly #server: Server;
  readonly #exchange: Exchange;
  /** The call that the request has become; `undefined` before, and if it becomes none. */
  #call: AnyCall | undefined;
  /** When the request began; 0 if there is no `onAnswer`. */
  readonly #startMs: number;
  /** The client that trusted proxies name; `undefined` until first use, and without such proxies. */
  #trustedClient: Client | undefined;
  #controller: AbortController | undefined;
  #endListener: EndListener | undefined;
  #stopDeadline: (() => void) | undefined;
  #ignoreShutdown: (() => void) | undefined;

  constructor(server: Server, exchange: Exchange, target: Target) {
    const { authorization, xRequestId } = exchange.common;
    this.#server = server;
    this.#exchange = exchange;
    this.target = target;
    this.procedure = target.rpc?.name;
    this.stream = target.kind === "stream";
    this.authorization = authorization;
    this.xRequestId = xRequestId;
    this.connection = exchange.connection;
    this.#startMs = server.onAnswer === undefined ? 0 : performance.now();
  }

  // Looked up or computed on demand, because few requests need them.
  get header(): HeaderReader {
    return new RequestHeader(this.#exchange);
  }

  get protocol(): ProtocolName {
    return this.target.protocol.name;
  }

  get peer(): Peer {
    return this.#client ?? this.#exchange.peer;
  }

  get origin(): string {
    const { url, target } = this.#exchange;
    const [scheme = "", host = ""] = url.slice(0, url.length - target.length).split("://");
    return `${this.#client?.scheme ?? scheme}://${this.#client?.host ?? host}`;
  }

  get httpMethod(): string {
    return this.#exchange.httpMethod;
  }

  get isMounted(): boolean {
    return this.#exchange.isMounted;
  }

  /** The path template of the matched rule, or the path of the endpoint, with the prefix of the gateway. */
  get httpRoute(): string | undefined {
    const { target } = this;
    const { prefix } = this.#server.routes;
    if (target.kind === "endpoint") return fullPathOf(target.endpoint, prefix);
    return target.pathTemplate === undefined ? undefined : prefix + target.pathTemplate;
  }

  get #client(): Client | undefined {
    return (this.#trustedClient ??= this.#server.trustedProxies?.clientOf(this.#exchange.peer, this.#exchange));
  }

  addToAnswer(name: string, value: string): void {
    if (notAdded.has(name.toLowerCase())) return;
    this.#exchange.addedFields = [...this.#exchange.addedFields, name, value];
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.ended !== undefined) this.#controller.abort(this.ended);
    }
    return this.#controller.signal;
  }

  whenEnded(listener: EndListener): boolean {
    if (this.#endListener !== undefined) return false;
    this.#endListener = listener;
    return true;
  }

  removeEndListener(listener: EndListener): boolean {
    if (this.#endListener !== listener) return false;
    this.#endListener = undefined;
    return true;
  }

  /** Begins to read the body that names the RPC, which has no deadline: the HTTP server bounds the wait for any body. */
  beginBody(call: AnyCall): void {
    // Equivalent mutant: nothing of a body is read after the response.
    if (this.#open(call)) this.#read(call);
  }

  /** Begins a call, which ends by its response, its deadline, or when the client goes away. */
  begin(call: ServedCall, { options }: Rpc, timeoutMs: number | undefined): void {
    const { shutdownSignal, requestGate } = options;
    if (!this.#open(call)) return;
    if (shutdownSignal !== undefined) this.#abortOnShutdown(shutdownSignal);
    if (timeoutMs === 0) return this.#expire();
    // Rounded up, because less than a millisecond is still some time.
    if (timeoutMs !== undefined) this.#stopDeadline = startDeadline(Math.ceil(timeoutMs), () => this.#expire());
    if (requestGate === undefined) return this.#read(call);
    // Connect's request gate, which decides before the body is read.
    const passed = (async () => await requestGate(call.view))();
    passed.then(
      () => {
        if (!this.done) this.#read(call);
      },
      (error: unknown) => this.fail(error),
    );
  }

  /** Returns whether the request goes on, or has ended because its client has gone away or its header is wrong. */
  #open(call: AnyCall): boolean {
    this.#call = call;
    if (this.#exchange.aborted) {
      this.#abandon(goneAway());
      return false;
    }
    this.#exchange.abortReceiver = this;
    if (call.wire.problem === undefined) return true;
    this.fail(call.wire.problem);
    return false;
  }

  #read(call: AnyCall): void {
    try {
      call.read();
    } catch (error) {
      this.fail(error instanceof HttpProblem ? httpError(error) : error);
    }
  }

  /** Ends the request as a success once its response is written, which is asynchronous only if it is compressed. */
  succeed(written: void | Promise<void>): void {
    if (!(written instanceof Promise)) return this.settle(undefined);
    // An error while the response is being compressed, or because that has failed, is sent uncompressed.
    this.#call?.wire.giveUpCoding?.();
    written.then(
      () => this.settle(undefined),
      (error: unknown) => this.failToWrite(error),
    );
  }

  /** Ends the call with the error for what its handler or an interceptor has thrown. */
  failHandling(thrown: unknown, context: HandlerContext): void {
    if (!this.done) this.fail(this.#server.toError(thrown, context));
  }

  /** Ends the call because its response cannot be written: the client learns that, but not why. */
  failToWrite(error: unknown): void {
    if (!this.done) this.fail(toFault(error, responseNotWritten));
  }

  /** Ends the request, and responds with an error. */
  fail(thrown: unknown): void {
    if (this.done) return;
    const error = toConnectError(thrown, requestFailed);
    const call = this.#call;
    if (call === undefined) return this.#refuseAsked(error);
    this.#end(error);
    this.#reportError(error);
    // The error cannot be written, for example because its details do not serialize.
    const giveUp = (fault: unknown): void => {
      this.#exchange.reset();
      call.wire.release?.();
      this.report(fault, responseNotWritten);
    };
    let written: void | Promise<void> = undefined;
    try {
      written = call.writeError(error);
    } catch (fault) {
      giveUp(fault);
    }
    // Settled after writing, so that the status of the response can be read.
    if (!(written instanceof Promise)) return this.#settled(error);
    // A compression of the program may never end, and neither the deadline nor the client ends this call any more.
    const late = Promise.withResolvers<void>();
    const stop = startDeadline(call.errorCodingMsMax ?? errorCodingMsMaxDefault, late.resolve);
    const uncoded = late.promise.then(() => {
      call.wire.giveUpCoding?.();
      return call.writeError(error);
    });
    void Promise.race([written, uncoded])
      .catch(giveUp)
      .then(() => this.#settled(error))
      .finally(stop);
  }

  /** Ends a request before it is a call, with an error in the protocol that it looks like. */
  #refuseAsked(error: ConnectError): void {
    const { target } = this;
    const { protocol, rpc } = target;
    const call = target.kind === "unary" || target.kind === "stream" ? target : undefined;
    this.refuse(protocol, { error, httpStatus: httpStatusOf(error), fields: [], rpc, target: call });
  }

  /** Ends a request that is not a call, and responds with an error. */
  refuse(protocol: Pick<Protocol, "refuse">, refusal: Refusal): void {
    const { error } = refusal;
    this.done = true;
    this.#reportError(error);
    refuse(this.#exchange, protocol, refusal, (fault, failure) => this.report(fault, failure));
    this.#settled(error);
  }

  /** Ends the request, with a response that was written or without any. */
  settle(error: ConnectError | undefined): void {
    // Writing an answer may end its stream, which reports back before this runs.
    if (this.done) return;
    this.#end(error);
    this.#settled(error);
  }

  aborted(reason: HttpProblem): void {
    this.#abandon(httpError(reason));
  }

  #abandon(reason: ConnectError): void {
    if (!this.done) this.#call?.wire.release?.();
    this.settle(reason);
  }

  #expire(): void {
    this.fail(problem("ERR_DEADLINE_EXCEEDED", "the operation timed out"));
  }

  /** Aborts the signal when the server shuts down: a handler that listens stops early, any other may still finish. */
  #abortOnShutdown(shutdown: AbortSignal): void {
    const abort = (): void => this.#abort(shutdown.reason);
    if (shutdown.aborted) return abort();
    shutdown.addEventListener("abort", abort);
    this.#ignoreShutdown = () => shutdown.removeEventListener("abort", abort);
  }

  /** Releases what the request holds. */
  #end(error: ConnectError | undefined): void {
    this.done = true;
    this.#exchange.abortReceiver = undefined;
    this.#stopDeadline?.();
    this.#ignoreShutdown?.();
    // Connect aborts the signal of every call that has ended, so that what depends on it is released.
    this.#abort(error ?? completed);
    this.#call?.ended?.();
  }

  #abort(reason: unknown): void {
    this.ended ??= reason;
    this.#controller?.abort(reason);
    this.#endListener?.handleEvent();
  }

  /** Calls `onError` before the response, and reports the fault behind the error, if there is one. */
  #reportError(error: ConnectError): void {
    this.#server.onError?.(this, error);
    const fault = takeFault(error);
    if (fault !== undefined) this.report(fault.thrown, fault.failure);
  }

  /** Reports a fault, after `onError`, which may have added the id of the request to the response. */
  report(error: unknown, failure: Failure): void {
    const { procedure, contextValues } = this;
    this.#server.report(error, failure, { procedure, requestId: requestIdOf(this.#exchange), contextValues });
  }

  #settled(error: ConnectError | undefined): void {
    const { onAnswer } = this.#server;
    if (onAnswer === undefined) return;
    // Nothing is written to a client that has gone away, which may not have been noticed before.
    const outcome = error === undefined && this.#exchange.httpStatus === 0 ? goneAway() : error;
    onAnswer(new Answered(this, this.#exchange, outcome, performance.now() - this.#startMs));
  }
}

/**
 * Returns a header or trailer as it is sent: the call's own, or a copy of what an interceptor has put in its place.
 *
 * @throws TypeError for a value that is not a list of fields, or has an invalid name (RFC 9110 §5.1)
 */
export function headersToSend(given: Headers, own: LazyHeaders): Headers {
  return given === own ? own : new Headers([...given]);
}

/** The header of a request as the program gets it: read-only, while an exchange could also be answered. */
class RequestHeader implements HeaderReader {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  get(name: string): string | null {
    return this.#exchange.get(name);
  }
}

/** Returns the id by which the client knows a request: that of the response, or else the one that it has sent. */
function requestIdOf({ addedFields, common }: Exchange): string | undefined {
  const requestId = readHeaderField(addedFields, "x-request-id") ?? common.xRequestId;
  return requestId !== null && printableId.test(requestId) ? requestId : undefined;
}

// A client must not be able to write lines of a log with its id, or long ones.
const printableId = /^[!-~]{1,128}$/;
