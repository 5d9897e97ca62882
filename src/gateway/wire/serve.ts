import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { type Cors, httpStatusOf } from "../rest/index.ts";
import type { ErrorWriter } from "./error-writer.ts";
import type { Admit, AdmitRequest, HeaderReader, Peer, Protocol } from "./admit.ts";
import { ConnectUnary } from "./connect-unary.ts";
import { RequestContextValues } from "./context-values.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import { GrpcUnary } from "./grpc-unary.ts";
import { GrpcWebUnary } from "./grpc-web-unary.ts";
import { type HeaderFields, FieldReader, readField } from "./header-fields.ts";
import type { Match } from "./match.ts";
import type { UnaryProcedure } from "./procedure.ts";
import { refuse } from "./refuse.ts";
import { RestUnary } from "./rest-unary.ts";
import { serveStream } from "./stream-call.ts";
import { type CallOwner, toConnectError, UnaryCall } from "./unary-call.ts";
import type { UnaryWire } from "./unary-wire.ts";

/** One answered request, for logs and metrics. */
export interface Answer {
  /** `/package.Service/Method`, or `undefined` when the request was for none. */
  readonly procedure: string | undefined;
  readonly protocol: Protocol;
  readonly httpMethod: string;
  /** The request target without its query. */
  readonly path: string;
  /** 0 when the client went away before it could be answered. */
  readonly httpStatus: number;
  /** The error that was answered with; `undefined` when all went well. */
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
  readonly contextValues: ContextValues;
  readonly peer: Peer;
}

/** Serves one exchange for what it was found to ask for, with the context values to start from. */
export type Serve = (exchange: Exchange, match: Match, values?: ContextValues) => void;

/** What {@link createServe} stands on. */
export interface ServeOptions {
  readonly admit: Admit | undefined;
  readonly writeErrorRecord: ErrorWriter;
  readonly cors: Cors | undefined;
  readonly onAnswer: ((answer: Answer) => void) | undefined;
  readonly defaultTimeoutMs: number;
}

/**
 * Makes the function that serves one exchange: admit → answer what the match said, or run the call.
 *
 * `admit` runs exactly once, before anything is answered, also when nothing matched; its refusal wins
 * over what the match would have said. Only what is open by its nature, an {@link Endpoint} that says
 * so, goes without.
 */
export function createServe(options: ServeOptions): Serve {
  return (exchange, match, values = new RequestContextValues()) =>
    new Serving(options, exchange, match, values).start();
}

/** One request between its match and its answer. */
class Serving implements CallOwner {
  readonly #options: ServeOptions;
  readonly #exchange: Exchange;
  readonly #match: Match;
  readonly #values: ContextValues;
  /** When it began; only looked at where somebody is told of the answer. */
  readonly #startMs: number;

  constructor(options: ServeOptions, exchange: Exchange, match: Match, values: ContextValues) {
    this.#options = options;
    this.#exchange = exchange;
    this.#match = match;
    this.#values = values;
    this.#startMs = options.onAnswer === undefined ? 0 : performance.now();
  }

  start(): void {
    const { admit, cors } = this.#options;
    if (cors !== undefined && answerPreflight(this.#exchange, cors)) return this.settled(undefined);
    const isOpen = this.#match.kind === "endpoint" && this.#match.endpoint.open;
    if (admit === undefined || isOpen) return this.#proceed();
    let admitted: void | Promise<void>;
    try {
      admitted = admit(new ExchangeAdmission(this.#exchange, this.#procedure, protocolOf(this.#match), this.#values));
    } catch (error) {
      return this.#reject(error);
    }
    // No promise where the decision is at hand. What is not nothing may be a promise of another make, and refuse yet.
    if (admitted === undefined) return this.#proceed();
    Promise.resolve(admitted).then(
      () => this.#proceed(),
      (error: unknown) => this.#reject(error),
    );
  }

  /** The request has its answer. */
  settled(error: ConnectError | undefined): void {
    const { onAnswer } = this.#options;
    if (onAnswer === undefined) return;
    const { target, httpMethod, httpStatus, peer } = this.#exchange;
    const questionMark = target.indexOf("?");
    onAnswer({
      procedure: this.#procedure,
      protocol: protocolOf(this.#match),
      httpMethod,
      path: questionMark < 0 ? target : target.slice(0, questionMark),
      httpStatus,
      error,
      durationMs: performance.now() - this.#startMs,
      contextValues: this.#values,
      peer,
    });
  }

  get #procedure(): string | undefined {
    return "procedure" in this.#match ? this.#match.procedure?.name : undefined;
  }

  #proceed(): void {
    const match = this.#match;
    if (match.kind === "refused") return this.#refuse(match.error, match.httpStatus, match.fields);
    if (match.kind === "endpoint") return this.#answerEndpoint(match.endpoint);
    const { procedure } = match;
    const { unary } = procedure;
    if (unary === undefined) {
      if (match.kind === "rpc") {
        serveStream(this.#exchange, procedure, match.type, this.#values, (error) => this.settled(error));
      }
      return;
    }
    new UnaryCall({
      exchange: this.#exchange,
      procedure,
      unary,
      wire: openUnary(this.#exchange, match, unary, this.#options),
      values: this.#values,
      owner: this,
      defaultTimeoutMs: this.#options.defaultTimeoutMs,
    }).start();
  }

  #answerEndpoint(endpoint: Endpoint): void {
    try {
      const { httpStatus, header = {}, body } = endpoint.answer();
      const bytes = typeof body === "string" ? Buffer.from(body) : body;
      this.#exchange.answer(httpStatus, Object.entries(header).flat(), bytes);
    } catch (error) {
      return this.#reject(error);
    }
    this.settled(undefined);
  }

  #reject(thrown: unknown): void {
    const error = toConnectError(thrown);
    this.#refuse(error, httpStatusOf(error), []);
  }

  #refuse(error: ConnectError, httpStatus: number, fields: HeaderFields): void {
    const match = this.#match;
    const connectStream = match.kind === "rpc" && match.type.stream ? match.type.format : undefined;
    const protocol = protocolOf(match);
    const refusal = { protocol, httpStatus, error, procedure: this.#procedure, fields, connectStream };
    refuse(this.#exchange, refusal, this.#options.writeErrorRecord);
    this.settled(error);
  }
}

/** The wire of a unary call's protocol. */
function openUnary(exchange: Exchange, match: CallMatch, unary: UnaryProcedure, options: ServeOptions): UnaryWire {
  const { procedure } = match;
  if (match.kind === "rest") return new RestUnary(exchange, match, options.writeErrorRecord);
  if (match.kind === "connect-get") return new ConnectUnary(exchange, procedure, unary, match.format, match.query);
  const { protocol, format, text } = match.type;
  if (protocol === "grpc") return new GrpcUnary(exchange, procedure, unary, format);
  if (protocol === "grpc-web") return new GrpcWebUnary(exchange, procedure, unary, format, text);
  return new ConnectUnary(exchange, procedure, unary, format, undefined);
}

function protocolOf(match: Match): Protocol {
  switch (match.kind) {
    case "rpc":
      return match.type.protocol;
    case "connect-get":
      return "connect";
    case "refused":
      return match.protocol;
    case "rest":
    case "endpoint":
      return "rest";
  }
}

/** Answers a preflight; any other request has its answer say which origins may read it. */
function answerPreflight(exchange: Exchange, cors: Cors): boolean {
  const origin = readField(exchange.fields, "origin");
  const accessControlRequestMethod = readField(exchange.fields, "access-control-request-method");
  const fields = cors.preflight({ httpMethod: exchange.httpMethod, origin, accessControlRequestMethod });
  if (fields === undefined) exchange.addedFields = cors.responseFields(origin);
  else exchange.answer(204, fields);
  return fields !== undefined;
}

/** What `admit` is shown of an exchange; the parts that it seldom asks for are found when it does. */
class ExchangeAdmission implements AdmitRequest {
  readonly procedure: string | undefined;
  readonly protocol: Protocol;
  readonly contextValues: ContextValues;
  readonly #exchange: Exchange;

  constructor(exchange: Exchange, procedure: string | undefined, protocol: Protocol, values: ContextValues) {
    this.procedure = procedure;
    this.protocol = protocol;
    this.contextValues = values;
    this.#exchange = exchange;
  }

  get header(): HeaderReader {
    return new FieldReader(this.#exchange.fields);
  }

  get peer(): Peer {
    return this.#exchange.peer;
  }

  get connection(): object {
    return this.#exchange.connection;
  }
}

type CallMatch = Exclude<Match, { kind: "endpoint" | "refused" }>;
