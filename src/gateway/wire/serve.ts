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
import { type HeaderFields, readField, toHeaderReader } from "./header-fields.ts";
import type { Match } from "./match.ts";
import type { UnaryProcedure } from "./procedure.ts";
import { refuse } from "./refuse.ts";
import { RestUnary } from "./rest-unary.ts";
import { serveStream } from "./stream-call.ts";
import { toConnectError, UnaryCall } from "./unary-call.ts";
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
  const { admit, writeErrorRecord, cors, onAnswer, defaultTimeoutMs } = options;

  return (exchange, match, values = new RequestContextValues()) => {
    const protocol = protocolOf(match);
    const procedure = "procedure" in match ? match.procedure?.name : undefined;
    const settled = observe(exchange, protocol, procedure, values);
    if (cors !== undefined && answerPreflight(exchange, cors)) return settled();
    const refuseWith = (error: ConnectError, httpStatus: number, fields: HeaderFields = []): void => {
      const connectStream = match.kind === "rpc" && match.type.stream ? match.type.format : undefined;
      refuse(exchange, { protocol, httpStatus, error, procedure, fields, connectStream }, writeErrorRecord);
      settled(error);
    };
    const proceed = (): void => {
      if (match.kind === "refused") refuseWith(match.error, match.httpStatus, match.fields);
      else if (match.kind === "endpoint") answerEndpoint(exchange, match.endpoint, settled);
      else serveCall(exchange, match, values, settled);
    };
    const reject = (thrown: unknown): void => {
      const error = toConnectError(thrown);
      refuseWith(error, httpStatusOf(error));
    };
    if (admit === undefined || (match.kind === "endpoint" && match.endpoint.open)) return proceed();
    try {
      const admitted = admit(new ExchangeAdmission(exchange, procedure, protocol, values));
      if (admitted instanceof Promise) admitted.then(proceed, reject);
      else proceed();
    } catch (error) {
      reject(error);
    }
  };

  function serveCall(exchange: Exchange, match: CallMatch, values: ContextValues, settled: Settled): void {
    const { procedure } = match;
    const { unary } = procedure;
    if (unary === undefined) {
      if (match.kind === "rpc") serveStream(exchange, procedure, match.type, values, settled);
      return;
    }
    const wire = openUnary(exchange, match, unary);
    new UnaryCall({ exchange, procedure, unary, wire, values, settled, defaultTimeoutMs }).start();
  }

  function openUnary(exchange: Exchange, match: CallMatch, unary: UnaryProcedure): UnaryWire {
    const { procedure } = match;
    if (match.kind === "rest") return new RestUnary(exchange, match, writeErrorRecord);
    if (match.kind === "connect-get") return new ConnectUnary(exchange, procedure, unary, match.format, match.query);
    const { protocol, format, text } = match.type;
    if (protocol === "grpc") return new GrpcUnary(exchange, procedure, unary, format);
    if (protocol === "grpc-web") return new GrpcWebUnary(exchange, procedure, unary, format, text);
    return new ConnectUnary(exchange, procedure, unary, format, undefined);
  }

  function observe(
    exchange: Exchange,
    protocol: Protocol,
    procedure: string | undefined,
    contextValues: ContextValues,
  ): Settled {
    if (onAnswer === undefined) return ignore;
    const startMs = performance.now();
    return (error) => {
      const questionMark = exchange.target.indexOf("?");
      onAnswer({
        procedure,
        protocol,
        httpMethod: exchange.httpMethod,
        path: questionMark < 0 ? exchange.target : exchange.target.slice(0, questionMark),
        httpStatus: exchange.httpStatus,
        error,
        durationMs: performance.now() - startMs,
        contextValues,
        peer: exchange.peer,
      });
    };
  }
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
    return toHeaderReader(this.#exchange.fields);
  }

  get peer(): Peer {
    return this.#exchange.peer;
  }

  get connection(): object {
    return this.#exchange.connection;
  }
}

function answerEndpoint(exchange: Exchange, endpoint: Endpoint, settled: Settled): void {
  const { httpStatus, header = {}, body } = endpoint.answer();
  exchange.answer(httpStatus, Object.entries(header).flat(), typeof body === "string" ? Buffer.from(body) : body);
  settled();
}

function ignore(): void {}

type CallMatch = Exclude<Match, { kind: "endpoint" | "refused" }>;
type Settled = (error?: ConnectError) => void;
