import type { ConnectError, ContextValues, HandlerContext } from "@connectrpc/connect";
import {
  type AbortReceiver,
  type Exchange,
  type HeaderReader,
  HttpProblem,
  requireField,
  reservedResponseFields,
  type Peer,
  startDeadline,
  type Failure,
  type Client,
} from "../http/index.ts";
import type { DescMethod } from "@bufbuild/protobuf";
import { problem } from "../protobuf/index.ts";
import {
  clientGoneError,
  httpError,
  type ErrorWire,
  type ProtocolName,
  type Rpc,
  type Wire,
} from "../protocols/index.ts";
import { LazyCompletedRequest, requestIdOfExchange } from "./completed-request.ts";
import { completedReason, takeFault, toConnectError, toFault } from "./to-connect-error.ts";
import { CallValues, type CallView, type ViewedRequest } from "./call-view.ts";
import { fieldFailure, requestFailure, responseFailure } from "./faults.ts";
import { fullPathOf, pathOf, type Target } from "./routes.ts";
import { errorToSend, type Server } from "./server.ts";

/** A call, or a body reader that finds the call named by the body. */
export interface AnyCall extends ErrorWire {
  readonly wire: Pick<Wire, "problem" | "release">;
  /** Reads the request after all checks of the header. Throws HttpProblem if the application has consumed the body. */
  read(): void;
  /** Milliseconds after which {@link writeError} is called again. */
  readonly maxErrorCompressionMs?: number | undefined;
  /** Frees the call's resources. Called when the request has ended for any reason. */
  close?(): void;
}

type ErrorWriter = ErrorWire & Partial<AnyCall>;

/** The members of a call that {@link ServedRequest} uses. */
export interface ServedCall extends AnyCall {
  readonly request: ServedRequest;
  readonly wire: Wire;
  readonly view: CallView;
}

/** Timeout for compressing an error, in milliseconds. Gzip compresses a megabyte in much less time. */
const maxErrorCompressionMsDefault = 1000;

/**
 * One request, from the header to the response, and the view for hooks ({@link AdmitRequest}).
 *
 * The request ends once, with the response, at the deadline, or when the client disconnects. The steps before the end
 * are in `serve.ts`.
 */
export class ServedRequest implements ViewedRequest, AbortReceiver {
  /** Returns a request's exchange. The exchange is private, because hooks get the request but must not respond. */
  static exchangeOf(request: ServedRequest): Exchange {
    return request.#exchange;
  }

  static serverOf(request: ServedRequest): Server {
    return request.#server;
  }

  readonly target: Target;
  /** Set later if the body names the RPC. */
  procedure: string | undefined;
  /** Set later if the body names the RPC. */
  stream: boolean;
  readonly authorization: string | null;
  readonly xRequestId: string | null;
  readonly connection: object;
  contextValues: ContextValues = new CallValues();
  isDone = false;
  /** Whether an error may be compressed: not while compressing a response is pending, and not after it has failed. */
  #mayCompressError = true;
  abortReason: unknown;
  readonly #server: Server;
  readonly #exchange: Exchange;
  /** The request's call. `undefined` until the call is opened, and for a request that is not a call. */
  #call: AnyCall | undefined;
  /** The time in milliseconds at which the request began, or 0 without a hook `onResponse`. */
  readonly #startMs: number;
  /** The client that trusted proxies report. `undefined` until first use, and without trusted proxies. */
  #trustedClient: Client | undefined;
  #controller: AbortController | undefined;
  #abortListener: { handleEvent(): void } | undefined;
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
    this.#startMs = server.onResponse === undefined ? 0 : performance.now();
  }

  // The following members are computed on demand, because few requests need them.
  get header(): HeaderReader {
    return new RequestHeader(this.#exchange);
  }

  get descriptor(): DescMethod | undefined {
    return this.target.rpc?.method;
  }

  get protocol(): ProtocolName {
    return this.target.protocol.name;
  }

  get peer(): Peer {
    return this.#client ?? this.#exchange.peer;
  }

  get origin(): string {
    const { url, target } = this.#exchange;
    const origin = url.slice(0, url.length - target.length);
    const client = this.#client;
    if (client === undefined) return origin;
    const [scheme = "", host = ""] = origin.split("://");
    return `${client.scheme ?? scheme}://${client.host ?? host}`;
  }

  get httpMethod(): string {
    return this.#exchange.httpMethod;
  }

  get isMounted(): boolean {
    return this.#exchange.isMounted;
  }

  get path(): string {
    return pathOf(this.#exchange.target);
  }

  /** The matched rule's path template, or the endpoint's path, with the gateway's prefix. */
  get httpRoute(): string | undefined {
    const { target } = this;
    const { prefix } = this.#server.routes;
    if (target.kind === "endpoint") return fullPathOf(target.endpoint, prefix);
    return target.pathTemplate === undefined ? undefined : prefix + target.pathTemplate;
  }

  get #client(): Client | undefined {
    return (this.#trustedClient ??= this.#server.trustedProxies?.clientOf(this.#exchange.peer, this.#exchange));
  }

  addResponseHeader(name: string, value: string | number): void {
    if (reservedResponseFields.has(name.toLowerCase())) return;
    const text = String(value);
    if (this.allowsField(name, text)) this.#exchange.addedFields = [...this.#exchange.addedFields, name, text];
  }

  /** Returns whether HTTP allows a response field, and reports why not. Programs in JavaScript may pass `undefined`. */
  allowsField(name: string, value: string | undefined): boolean {
    try {
      if (value === undefined) throw new TypeError(`the value of header "${name}" is undefined`);
      requireField(name, value);
      return true;
    } catch (error) {
      this.report(error, fieldFailure);
      return false;
    }
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.abortReason !== undefined) this.#controller.abort(this.abortReason);
    }
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.abortReason !== undefined;
  }

  get reason(): unknown {
    return this.abortReason;
  }

  addEventListener(type: "abort", listener: { handleEvent(): void }): void {
    if (this.#abortListener === undefined) this.#abortListener = listener;
    else this.signal.addEventListener(type, listener);
  }

  removeEventListener(type: "abort", listener: { handleEvent(): void }): void {
    if (this.#abortListener === listener) this.#abortListener = undefined;
    else this.#controller?.signal.removeEventListener(type, listener);
  }

  /** Starts reading a body that names the RPC. The HTTP server's timeout applies until the deadline starts. */
  beginBody(call: AnyCall): void {
    // equivalent mutant: after the response, a body is not read anyway.
    if (this.#open(call)) this.#read(call);
  }

  /** Starts a call. The call ends with the response, at the deadline, or when the client disconnects. */
  begin(call: ServedCall, { options }: Rpc, timeoutMs: number | undefined): void {
    const { shutdownSignal, requestGate } = options;
    if (!this.#open(call)) return;
    if (shutdownSignal !== undefined) this.#abortOnShutdown(shutdownSignal);
    if (timeoutMs === 0) return this.#expire();
    // The timeout is rounded up, so that a timeout below a millisecond does not become 0.
    if (timeoutMs !== undefined) this.#stopDeadline = startDeadline(Math.ceil(timeoutMs), () => this.#expire());
    if (requestGate === undefined) return this.#read(call);
    // Connect's request gate admits or refuses the call before the body is read.
    const admitted = (async () => await requestGate(call.view))();
    admitted.then(
      () => {
        if (!this.isDone) this.#read(call);
      },
      (error: unknown) => this.fail(error),
    );
  }

  /** Returns `false` if the request has ended because the client has disconnected or the header is not valid. */
  #open(call: AnyCall): boolean {
    this.#call = call;
    if (this.#exchange.aborted) {
      this.#abandon(clientGoneError());
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

  /** Ends the request successfully once the response is written. Only writing a compressed response is asynchronous. */
  succeed(written: void | Promise<void>): void {
    if (!(written instanceof Promise)) return this.settle(undefined);
    this.#mayCompressError = false;
    written.then(
      () => this.settle(undefined),
      (error: unknown) => this.failToWrite(error),
    );
  }

  /** Ends the call with the error for a value that the handler or an interceptor has thrown. */
  failHandling(thrown: unknown, context: HandlerContext): void {
    if (!this.isDone) this.fail(this.#server.toError(thrown, context));
  }

  /** Ends the call because the response cannot be written. The cause is not sent to the client. */
  failToWrite(error: unknown): void {
    if (!this.isDone) this.fail(toFault(error, responseFailure));
  }

  /** Ends the request, and responds with an error. */
  fail(thrown: unknown): void {
    if (!this.isDone) this.#fail(toConnectError(thrown, requestFailure), this.#call ?? this.#openToRefuse());
  }

  /** Ends a request that is not a call, and responds with an error. */
  refuse(error: ConnectError, wire: ErrorWire): void {
    this.#fail(error, wire);
  }

  /** Returns a writer for a refusal by `admit`: the wire, or the target's protocol if the request is not a call. */
  #openToRefuse(): ErrorWire {
    const { target } = this;
    if (target.kind !== "unmatched" && target.kind !== "endpoint") return target.open(this.#exchange);
    return target.protocol.openError(this.#exchange, [], target.rpc);
  }

  #fail(sent: ConnectError, call: ErrorWriter): void {
    const error = errorToSend(sent, this.#server);
    this.#end(error);
    this.#reportError(error, sent);
    // Called if the error cannot be written, for example because the error's details do not serialize.
    const resetExchange = (fault: unknown): void => {
      this.#exchange.reset();
      call.wire?.release();
      this.report(fault, responseFailure);
    };
    let written: void | Promise<void> = undefined;
    try {
      written = call.writeError(error, this.#mayCompressError);
    } catch (fault) {
      resetExchange(fault);
    }
    // `onResponse` is called after writing, so that the response status is known.
    if (!(written instanceof Promise)) return this.#onSettled(error);
    // The application's compression may never finish, and neither the deadline nor a disconnect now ends the call.
    const timeout = Promise.withResolvers<void>();
    const stopTimer = startDeadline(call.maxErrorCompressionMs ?? maxErrorCompressionMsDefault, timeout.resolve);
    const uncompressed = timeout.promise.then(() => call.writeError(error, false));
    void Promise.race([written, uncompressed])
      .catch(resetExchange)
      .then(() => this.#onSettled(error))
      .finally(stopTimer);
  }

  /** Ends the request after the response was written, or without a response. */
  settle(error: ConnectError | undefined): void {
    // Writing a response may close the stream, and the close event then settles the request before this call.
    if (this.isDone) return;
    this.#end(error);
    this.#onSettled(error);
  }

  clientAborted(reason: HttpProblem): void {
    this.#abandon(httpError(reason));
  }

  #abandon(reason: ConnectError): void {
    if (!this.isDone) this.#call?.wire.release();
    this.settle(reason);
  }

  #expire(): void {
    this.fail(problem("ERR_DEADLINE_EXCEEDED", "the operation timed out"));
  }

  /** Aborts the signal when the server shuts down. A handler that listens to the signal can then stop early. */
  #abortOnShutdown(shutdown: AbortSignal): void {
    const abort = (): void => this.#abort(shutdown.reason);
    if (shutdown.aborted) return abort();
    shutdown.addEventListener("abort", abort);
    this.#ignoreShutdown = () => shutdown.removeEventListener("abort", abort);
  }

  #end(error: ConnectError | undefined): void {
    this.isDone = true;
    this.#exchange.abortReceiver = undefined;
    this.#stopDeadline?.();
    this.#ignoreShutdown?.();
    // As in Connect, the signal of every ended call is aborted, so that dependent resources are released.
    this.#abort(error ?? completedReason);
    this.#call?.close?.();
  }

  #abort(reason: unknown): void {
    this.abortReason ??= reason;
    this.#controller?.abort(reason);
    this.#abortListener?.handleEvent();
  }

  /** Calls `onError` before the response is sent. If a fault caused the original error, reports the fault. */
  #reportError(error: ConnectError, original: ConnectError): void {
    this.#server.onError?.(this, error);
    const fault = takeFault(original);
    if (fault !== undefined) this.report(fault.thrown, fault.failure);
  }

  /** Reports a fault. Called after `onError`, because `onError` may add the request id to the response. */
  report(error: unknown, failure: Failure): void {
    const { procedure, contextValues } = this;
    this.#server.report(error, failure, { procedure, requestId: requestIdOfExchange(this.#exchange), contextValues });
  }

  #onSettled(error: ConnectError | undefined): void {
    const { onResponse } = this.#server;
    if (onResponse === undefined) return;
    // A response without a status means that the client has disconnected, even if no event has reported the disconnect.
    const outcome = error === undefined && this.#exchange.httpStatus === 0 ? clientGoneError() : error;
    onResponse(new LazyCompletedRequest(this, this.#exchange, outcome, performance.now() - this.#startMs));
  }
}

/** A request header for the program. The exchange is private, because the program must not write to the exchange. */
class RequestHeader implements HeaderReader {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  get(name: string): string | null {
    return this.#exchange.get(name);
  }
}
