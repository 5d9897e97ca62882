import type { ConnectError, ContextValues, HandlerContext } from "@connectrpc/connect";
import { Code } from "@connectrpc/connect";
import {
  type AbortReceiver,
  type Exchange,
  type HeaderReader,
  HttpProblem,
  type Peer,
  readHeaderField,
  startDeadline,
} from "../carriers/index.ts";
import { codedError, type Failure } from "../errors/index.ts";
import {
  goneAway,
  httpError,
  type LazyHeaders,
  type Procedure,
  type ProtocolName,
  type Wire,
} from "../protocols/index.ts";
import { httpStatusOf } from "../rest/index.ts";
import type { Client } from "../trusted-proxies/index.ts";
import { Answered } from "./answered.ts";
import { completed, takeFault, toConnectError, toFault } from "./call-error.ts";
import { CallValues } from "./call-values.ts";
import { CallView } from "./call-view.ts";
import { unserved, unwritten } from "./faults.ts";
import type { AdmitRequest } from "./hooks.ts";
import { fullPathOf, type Match } from "./match.ts";
import { refuse } from "./refuse.ts";
import type { Server } from "./server.ts";

/** A call as its request sees it: what reads it, answers it with an error, and learns that it has ended. */
export interface ServedCall {
  readonly wire: Wire;
  readonly view: CallView;
  /** Reads the request, once everything has let it pass. Throws HttpProblem if the program has read the body before. */
  read(): void;
  /** Answers with an error. Called once more if that takes too long: then it is not coded, or the answer breaks off. */
  writeError(error: ConnectError): void | Promise<void>;
  /** Milliseconds until it is called again. */
  readonly errorCodingMsMax?: number | undefined;
  /** Called when the call has ended, however it ended. */
  ended?(): void;
}

/** Milliseconds that the error of an answer may take to be coded: far more than what gzip takes for a megabyte. */
const errorCodingMsMaxDefault = 1000;

/** Returns the exchange of a request. No member of it, because hooks get the request and must not answer it. */
export let exchangeOf: (request: ServedRequest) => Exchange;
/** Returns the server of a request. */
export let serverOf: (request: ServedRequest) => Server;

/**
 * One request, from its header to its answer: what hooks see of it ({@link AdmitRequest}), and how it ends.
 *
 * It is settled by whichever comes first: the answer, the deadline, or the client going away. The steps between are in
 * `serve.ts`.
 */
export class ServedRequest implements AdmitRequest, AbortReceiver {
  static {
    exchangeOf = (request) => request.#exchange;
    serverOf = (request) => request.#server;
  }

  readonly match: Match;
  readonly procedure: string | undefined;
  readonly stream: boolean;
  readonly authorization: string | null;
  readonly xRequestId: string | null;
  readonly connection: object;
  contextValues: ContextValues = new CallValues();
  done = false;
  /** Why {@link signal} aborted, or would have if it had been read; `undefined` until then. */
  ended: unknown;
  /** Is told of that, as the listeners of {@link signal} are. */
  endListener: { handleEvent(): void } | undefined;
  readonly #server: Server;
  readonly #exchange: Exchange;
  /** The call that the request has become; `undefined` before, and for whatever is no call. */
  #call: ServedCall | undefined;
  /** When the request began; 0 if there is no `onAnswer`. */
  readonly #startMs: number;
  /** The client that trusted proxies name; `undefined` until it is asked for, and without such proxies. */
  #tracedClient: Client | undefined;
  #controller: AbortController | undefined;
  #stopDeadline: (() => void) | undefined;
  #ignoreShutdown: (() => void) | undefined;

  constructor(server: Server, exchange: Exchange, match: Match) {
    const { authorization, xRequestId } = exchange.common;
    this.#server = server;
    this.#exchange = exchange;
    this.match = match;
    this.procedure = match.procedure?.name;
    this.stream = match.kind === "stream";
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
    return this.match.protocol.name;
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
    const { match } = this;
    const { prefix } = this.#server.table;
    if (match.kind === "endpoint") return fullPathOf(match.endpoint, prefix);
    return match.pathTemplate === undefined ? undefined : prefix + match.pathTemplate;
  }

  get #client(): Client | undefined {
    return (this.#tracedClient ??= this.#server.trustedProxies?.clientOf(this.#exchange.peer, this.#exchange));
  }

  addToAnswer(name: string, value: string): void {
    if (ownFields.test(name)) return;
    this.#exchange.addedFields = [...this.#exchange.addedFields, name, value];
  }

  /** Aborts when the call ends, however it ends, or when the server shuts down. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.ended !== undefined) this.#controller.abort(this.ended);
    }
    return this.#controller.signal;
  }

  /** Returns the milliseconds that a call has; `undefined` for no limit. */
  timeoutOf({ timeoutMs }: Wire, { kind }: Procedure): number | undefined {
    return timeoutMs ?? (kind === "unary" ? this.#server.defaultTimeoutMs : undefined);
  }

  /** Becomes a call, which ends by its answer, its deadline, or when the client goes away. */
  begin(call: ServedCall, { options }: Procedure, timeoutMs: number | undefined): void {
    const { shutdownSignal, requestGate } = options;
    const { problem } = call.wire;
    this.#call = call;
    if (this.#exchange.aborted) return this.#abandon(goneAway());
    this.#exchange.abortReceiver = this;
    if (shutdownSignal !== undefined) this.#heedShutdown(shutdownSignal);
    if (problem !== undefined) return this.fail(problem);
    if (timeoutMs === 0) return this.#expire();
    // Rounded up, because less than a millisecond is still some time.
    if (timeoutMs !== undefined) this.#stopDeadline = startDeadline(Math.ceil(timeoutMs), () => this.#expire());
    if (requestGate === undefined) return this.#read(call);
    // Connect's request gate, which decides before the body is read.
    const asked = (async () => await requestGate(call.view))();
    asked.then(
      () => {
        if (!this.done) this.#read(call);
      },
      (error: unknown) => this.fail(error),
    );
  }

  #read(call: ServedCall): void {
    try {
      call.read();
    } catch (error) {
      this.fail(error instanceof HttpProblem ? httpError(error) : error);
    }
  }

  /** Ends the request as a success once its answer is written, which takes time only if it is compressed. */
  succeed(written: void | Promise<void>): void {
    if (!(written instanceof Promise)) return this.settle(undefined);
    // What comes while the answer is being coded, or because that has failed, is an error, and sent at once.
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

  /** Ends the call because its answer cannot be written: the client learns that, but not why. */
  failToWrite(error: unknown): void {
    if (!this.done) this.fail(toFault(error, unwritten));
  }

  /** Ends the request, and answers with an error. */
  fail(thrown: unknown): void {
    if (this.done) return;
    const error = toConnectError(thrown, unserved);
    const call = this.#call;
    if (call === undefined) return this.refuse(error, httpStatusOf(error), []);
    this.#end(error);
    this.#failing(error);
    // The error cannot be written, for example because its details do not serialize.
    const giveUp = (fault: unknown): void => {
      this.#exchange.reset();
      call.wire.release?.();
      this.report(fault, unwritten);
    };
    let written: void | Promise<void> = undefined;
    try {
      written = call.writeError(error);
    } catch (fault) {
      giveUp(fault);
    }
    // Settled after writing, so that the status of the answer can be read.
    if (!(written instanceof Promise)) return this.#settled(error);
    // A coding of the program's own may never end, and no deadline and no client ends this call any more.
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

  /** Ends a request that is no call, and answers with an error. */
  refuse(error: ConnectError, httpStatus: number, fields: readonly string[]): void {
    const { match } = this;
    this.done = true;
    this.#failing(error);
    const { procedure, kind } = match;
    const target = kind === "unary" || kind === "stream" ? match : undefined;
    const refusal = { error, httpStatus, fields, procedure, target };
    refuse(this.#server, this.#exchange, match.protocol, refusal, (fault, failure) => this.report(fault, failure));
    this.#settled(error);
  }

  /** Ends the request with an answer that was written, or without any. */
  settle(error: ConnectError | undefined): void {
    // Writing an answer may end its stream, which reports back before this runs.
    if (this.done) return;
    this.#end(error);
    this.#settled(error);
  }

  aborted(problem: HttpProblem): void {
    this.#abandon(httpError(problem));
  }

  #abandon(reason: ConnectError): void {
    if (!this.done) this.#call?.wire.release?.();
    this.settle(reason);
  }

  #expire(): void {
    this.fail(codedError("ERR_DEADLINE_EXCEEDED", "the operation timed out", Code.DeadlineExceeded));
  }

  /** Aborts the signal when the server shuts down: a handler that heeds it stops early, any other may still finish. */
  #heedShutdown(shutdown: AbortSignal): void {
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
    this.endListener?.handleEvent();
  }

  /** Tells of an error before it is answered, and of the fault behind it, if there is one. */
  #failing(error: ConnectError): void {
    this.#server.onError?.(this, error);
    const fault = takeFault(error);
    if (fault !== undefined) this.report(fault.thrown, fault.failure);
  }

  /** Reports a fault, after `onError`, which may have given the answer the id of its request. */
  report(error: unknown, failure: Failure): void {
    const { procedure, contextValues } = this;
    this.#server.report(error, failure, { procedure, requestId: requestIdOf(this.#exchange), contextValues });
  }

  #settled(error: ConnectError | undefined): void {
    const { onAnswer } = this.#server;
    if (onAnswer === undefined) return;
    // A carrier writes nothing to a client that has gone away, which is not always told of before.
    const outcome = error === undefined && this.#exchange.httpStatus === 0 ? goneAway() : error;
    onAnswer(new Answered(this, this.#exchange, outcome, performance.now() - this.#startMs));
  }
}

/**
 * Returns a header or trailer as it is sent: the call's own, or a copy of what an interceptor has put in its place.
 *
 * @throws TypeError for what is no list of fields, or has a name that no field may have (RFC 9110 §5.1)
 */
export function headersToSend(given: Headers, own: LazyHeaders): Headers {
  return given === own ? own : new Headers([...given]);
}

/** The header of a request as the program gets it: it can be read, while an exchange could also be answered. */
class RequestHeader implements HeaderReader {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  get(name: string): string | null {
    return this.#exchange.get(name);
  }
}

/** What the gateway says of content and connection itself; two of one would be none (RFC 9110 §5.3). */
const ownFields =
  /^(?:connection|content-(?:encoding|length|type)|date|keep-alive|proxy-connection|trailer|transfer-encoding|upgrade)$/i;

/** Returns the id by which the client knows a request: that of its answer, or else the one that it has sent. */
function requestIdOf({ addedFields, common }: Exchange): string | undefined {
  const requestId = readHeaderField(addedFields, "x-request-id") ?? common.xRequestId;
  return requestId !== null && printableId.test(requestId) ? requestId : undefined;
}

// Whoever sends an id must not be able to write lines of a log with it, or long ones.
const printableId = /^[!-~]{1,128}$/;
