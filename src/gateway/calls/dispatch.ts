import type { ConnectError, ContextValues, HandlerContext } from "@connectrpc/connect";
import {
  type Exchange,
  type HeaderFields,
  type HeaderReader,
  type Peer,
  readHeaderField,
  toUtf8,
} from "../carriers/index.ts";
import type { Failure } from "../errors/index.ts";
import {
  goneAway,
  openStreamProtocol,
  openUnaryProtocol,
  type Protocol,
  type Refusal,
  type StreamTarget,
  type UnaryTarget,
  writeRefusal,
} from "../protocols/index.ts";
import { type ErrorRecordWriter, httpStatusOf } from "../rest/index.ts";
import type { Client, TrustedProxies } from "../trusted-proxies/index.ts";
import type { CallOwner } from "./call.ts";
import { CallValues } from "./call-values.ts";
import { takeFault, toConnectError } from "./call-error.ts";
import type { Cors } from "./cors.ts";
import { type FaultReporter, unserved, unwritten } from "./faults.ts";
import { type Admit, type AdmitRequest, type AnsweredRequest, idempotencyFieldKey } from "./hooks.ts";
import { type Endpoint, type EndpointAnswer, EndpointExchange } from "./endpoint.ts";
import { fullPathOf, type Match, matchRequest, type MatchTable } from "./match.ts";
import { StreamCall } from "./stream-call.ts";
import { UnaryCall } from "./unary-call.ts";

/**
 * Serves one exchange.
 *
 * @param match - what the exchange asks for, if the caller has found that out already
 * @param createValues - returns the initial context values; what it throws is answered like a refusal of `admit`
 */
export type Dispatch = (exchange: Exchange, match?: Match, createValues?: () => ContextValues | undefined) => void;

/** Options of {@link createDispatch}. */
export interface DispatchOptions {
  readonly table: MatchTable;
  readonly admit: Admit | undefined;
  readonly writeErrorRecord: ErrorRecordWriter;
  readonly toError: (thrown: unknown, context: HandlerContext) => ConnectError;
  readonly cors: Cors | undefined;
  readonly onRequest: ((request: AdmitRequest) => void) | undefined;
  readonly onError: ((request: AdmitRequest, error: ConnectError) => void) | undefined;
  readonly onAnswer: ((answer: AnsweredRequest) => void) | undefined;
  readonly report: FaultReporter;
  /** Milliseconds for a unary call whose client sets no deadline; `undefined` for no limit. */
  readonly defaultTimeoutMs: number | undefined;
  /** The proxies that may speak for their clients. */
  readonly trustedProxies: TrustedProxies | undefined;
}

/**
 * Creates the function that serves one exchange: match, admit, then answer the match or run the call.
 *
 * `admit` runs exactly once, before anything is answered, even when nothing matched; its refusal wins over the answer
 * to the match. Only a CORS preflight and an {@link Endpoint} that is `open` skip it.
 */
export function createDispatch(options: DispatchOptions): Dispatch {
  return (exchange, match = matchRequest(options.table, exchange), createValues) =>
    new ServedRequest(options, exchange, match).start(createValues);
}

/** Answers with a refusal. Never throws: one that cannot be written resets the exchange and is reported. */
export function refuse(
  exchange: Exchange,
  refusal: Refusal,
  writeErrorRecord: ErrorRecordWriter,
  report: FaultReporter,
): void {
  try {
    writeRefusal(exchange, refusal, writeErrorRecord);
  } catch (error) {
    exchange.reset();
    report(error, { errorCode: "ERR_ANSWER_FAILED", what: "a refusal could not be written" });
  }
}

/** One request from its match to its answer. `admit` and the other hooks see it as {@link AdmitRequest}. */
class ServedRequest implements AdmitRequest, CallOwner {
  readonly procedure: string | undefined;
  readonly stream: boolean;
  readonly authorization: string | null;
  readonly xRequestId: string | null;
  readonly connection: object;
  contextValues: ContextValues = new CallValues();
  readonly match: Match;
  readonly #exchange: Exchange;
  readonly #options: DispatchOptions;
  /** When the request began; 0 if there is no `onAnswer`. */
  readonly #startMs: number;
  /** The client that trusted proxies name; `undefined` until it is asked for, and without such proxies. */
  #tracedClient: Client | undefined;

  constructor(options: DispatchOptions, exchange: Exchange, match: Match) {
    this.procedure = match.procedure?.name;
    this.stream = match.kind === "stream" || match.kind === "rest-stream";
    this.#exchange = exchange;
    const { authorization, xRequestId } = exchange.common;
    this.authorization = authorization;
    this.xRequestId = xRequestId;
    this.connection = exchange.connection;
    this.#options = options;
    this.match = match;
    this.#startMs = options.onAnswer === undefined ? 0 : performance.now();
  }

  // Looked up or computed on demand, because few requests need them.
  get header(): HeaderReader {
    return new RequestHeader(this.#exchange);
  }

  get protocol(): Protocol {
    return this.match.protocol;
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
    const { prefix } = this.#options.table;
    if (match.kind === "endpoint") return fullPathOf(match.endpoint, prefix);
    return "binding" in match ? prefix + match.binding.pattern.pathTemplate : undefined;
  }

  get #client(): Client | undefined {
    return (this.#tracedClient ??= this.#options.trustedProxies?.clientOf(this.#exchange.peer, this.#exchange));
  }

  /** Never throws: a carrier could only end the connection, and a mounted handler the process. */
  start(createValues: (() => ContextValues | undefined) | undefined): void {
    try {
      if (createValues !== undefined) this.contextValues = createValues() ?? this.contextValues;
      this.#admit();
    } catch (error) {
      this.#reject(error);
    }
  }

  #admit(): void {
    const { admit, cors, onRequest } = this.#options;
    const { idempotencyKey } = this.#exchange.common;
    if (idempotencyKey !== null) this.contextValues.set(idempotencyFieldKey, idempotencyKey);
    if (onRequest !== undefined) onRequest(this);
    if (cors !== undefined && answerPreflight(this.#exchange, cors)) return this.settled(undefined);
    const isOpen = this.match.kind === "endpoint" && this.match.endpoint.open;
    if (admit === undefined || isOpen) return this.#proceed();
    const admitted = admit(this);
    // A decision made at once costs no promise. Anything that was returned may be another library's thenable.
    if (admitted === undefined) return this.#proceed();
    Promise.resolve(admitted).then(
      () => this.#proceedLater(),
      (error: unknown) => this.#reject(error),
    );
  }

  #proceedLater(): void {
    if (this.#exchange.aborted) return this.settled(goneAway());
    try {
      this.#proceed();
    } catch (error) {
      this.#reject(error);
    }
  }

  addToAnswer(name: string, value: string): void {
    if (ownFields.test(name)) return;
    this.#exchange.addedFields = [...this.#exchange.addedFields, name, value];
  }

  toError(thrown: unknown, context: HandlerContext): ConnectError {
    return this.#options.toError(thrown, context);
  }

  failing(error: ConnectError): void {
    this.#options.onError?.(this, error);
    const fault = takeFault(error);
    if (fault !== undefined) this.#report(fault.thrown, fault.failure);
  }

  faulted(error: unknown): void {
    this.#report(error, unwritten);
  }

  /** Reports a fault, after `onError`, which may have given the answer the id of its request. */
  #report(error: unknown, failure: Failure): void {
    const { procedure, contextValues } = this;
    this.#options.report(error, failure, { procedure, requestId: requestIdOf(this.#exchange), contextValues });
  }

  settled(error: ConnectError | undefined): void {
    const { onAnswer } = this.#options;
    if (onAnswer === undefined) return;
    // A carrier writes nothing to a client that has gone away, which is not always told of before.
    const outcome = error === undefined && this.#exchange.httpStatus === 0 ? goneAway() : error;
    onAnswer(new Answered(this, this.#exchange, outcome, performance.now() - this.#startMs));
  }

  #proceed(): void {
    const match = this.match;
    switch (match.kind) {
      case "unmatched":
        return this.#refuse(match.error, match.httpStatus, match.fields);
      case "endpoint":
        return this.#answerEndpoint(match.endpoint);
      case "stream":
      case "rest-stream":
        return this.#callStream(match);
      default:
        return this.#callUnary(match);
    }
  }

  #callUnary(target: UnaryTarget): void {
    const { procedure } = target;
    const { contextValues: values } = this;
    const exchange = this.#exchange;
    const protocol = openUnaryProtocol(exchange, target, this.#options.writeErrorRecord);
    const timeoutMs = protocol.timeoutMs ?? this.#options.defaultTimeoutMs;
    new UnaryCall({ exchange, procedure, protocol, values, owner: this, timeoutMs }).start();
  }

  #callStream(target: StreamTarget): void {
    const { procedure } = target;
    const { contextValues: values } = this;
    const exchange = this.#exchange;
    const protocol = openStreamProtocol(exchange, target, this.#options.writeErrorRecord);
    const { timeoutMs } = protocol;
    new StreamCall({ exchange, procedure, protocol, values, owner: this, timeoutMs }).start();
  }

  #answerEndpoint(endpoint: Endpoint): void {
    const answer = endpoint.answer(new EndpointExchange(this.#exchange, this));
    // It may be another library's thenable.
    if (!("then" in answer)) return this.#writeEndpoint(answer);
    Promise.resolve(answer)
      .then((awaited) => this.#writeEndpoint(awaited))
      .catch((error: unknown) => this.#reject(error));
  }

  #writeEndpoint({ httpStatus, header = {}, body }: EndpointAnswer): void {
    const bytes = typeof body === "string" ? toUtf8(body) : body;
    this.#exchange.answer(httpStatus, Object.entries(header).flat(), bytes);
    this.settled(undefined);
  }

  #reject(thrown: unknown): void {
    const error = toConnectError(thrown, unserved);
    this.#refuse(error, httpStatusOf(error), []);
  }

  #refuse(error: ConnectError, httpStatus: number, fields: HeaderFields): void {
    const match = this.match;
    const connectStream = match.kind === "stream" && match.type.stream ? match.type.format : undefined;
    const { protocol, procedure } = this;
    this.failing(error);
    const refusal = { protocol, httpStatus, error, procedure, fields, connectStream };
    refuse(this.#exchange, refusal, this.#options.writeErrorRecord, (fault, failure) => this.#report(fault, failure));
    this.settled(error);
  }
}

/**
 * Computes its members on demand, because few are read: metrics read four, a trace that is not sampled one.
 *
 * Not the request itself, which has the credential: a log may print all of this.
 */
class Answered implements AnsweredRequest {
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
  readonly #source: ServedRequest;
  readonly #exchange: Exchange;

  constructor(source: ServedRequest, exchange: Exchange, error: ConnectError | undefined, durationMs: number) {
    this.error = error;
    this.durationMs = durationMs;
    this.#source = source;
    this.#exchange = exchange;
  }

  get procedure(): string | undefined {
    return this.#source.procedure;
  }

  get protocol(): Protocol {
    return this.#source.protocol;
  }

  get httpMethod(): string {
    return this.#exchange.httpMethod;
  }

  get path(): string {
    const { target } = this.#exchange;
    const questionMark = target.indexOf("?");
    return questionMark < 0 ? target : target.slice(0, questionMark);
  }

  get httpRoute(): string | undefined {
    return this.#source.httpRoute;
  }

  get httpVersion(): Exchange["httpVersion"] {
    return this.#exchange.httpVersion;
  }

  get scheme(): "http" | "https" {
    return this.#exchange.url.startsWith("https:") ? "https" : "http";
  }

  get httpStatus(): number {
    return this.#exchange.httpStatus;
  }

  get contextValues(): ContextValues {
    return this.#source.contextValues;
  }

  get peer(): Peer {
    return this.#source.peer;
  }
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

/** Answers a preflight and returns whether it was one. If not, adds the fields for pages of other origins. */
function answerPreflight(exchange: Exchange, cors: Cors): boolean {
  const origin = exchange.get("origin");
  const accessControlRequestMethod = exchange.get("access-control-request-method");
  const fields = cors.preflight({ httpMethod: exchange.httpMethod, origin, accessControlRequestMethod });
  if (fields === undefined) exchange.addedFields = [...exchange.addedFields, ...cors.responseFields(origin)];
  else exchange.answer(204, fields);
  return fields !== undefined;
}
