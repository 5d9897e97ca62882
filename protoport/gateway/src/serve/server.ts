import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { Exchange, HttpProblem, Limits, TrustedProxies } from "../http/index.ts";
import { type OptionLabels, withOption } from "../protobuf/index.ts";
import { type Admit, type AdmitRequest, type CompletedRequest, httpError } from "../protocols/index.ts";
import { addCorsFields } from "./cors.ts";
import type { FaultReporter } from "./faults.ts";
import type { Routes } from "./routes.ts";

/** The state that all requests to a gateway share, such as the routes and the program's hooks. */
export interface Server {
  readonly routes: Routes;
  readonly admit: Admit | undefined;
  /** Whether pages of other sites may send what needs no preflight. */
  readonly allowsCrossSite: boolean;
  readonly toError: (thrown: unknown, context: HandlerContext) => ConnectError;
  readonly onRequest: ((request: AdmitRequest) => void) | undefined;
  readonly onError: ((request: AdmitRequest, error: ConnectError) => void) | undefined;
  readonly onResponse: ((request: CompletedRequest) => void) | undefined;
  /** Labels that replace the names of options in errors. `undefined` shows the names. */
  readonly optionLabels: OptionLabels | undefined;
  readonly report: FaultReporter;
  readonly limits: Limits;
  /** The timeout in milliseconds for unary calls without a client's deadline, or `undefined` for no limit. */
  readonly defaultTimeoutMs: number | undefined;
  /** The proxies whose forwarding header fields are trusted. */
  readonly trustedProxies: TrustedProxies | undefined;
}

/**
 * The server for new requests. A proxy replaces the server when services or options change. Requests in flight keep the
 * server with which they began.
 */
export interface CurrentServer {
  server: Server;
}

/**
 * Returns the error to send instead of an error. The details have no hidden fields and values, and the message names
 * the option that would accept a refused request.
 */
export function errorToSend(error: ConnectError, { routes, optionLabels }: Server): ConnectError {
  return withOption(routes.hidden?.removeFromDetails(error) ?? error, optionLabels);
}

/** Responds in the REST format to a request that is not valid HTTP. */
export function refuseProblem(server: Server, exchange: Exchange, problem: HttpProblem): void {
  const { cors, protocols } = server.routes;
  if (cors !== undefined) addCorsFields(exchange, cors, "");
  const error = errorToSend(httpError(problem), server);
  void protocols.rest.openError(exchange, [], undefined).writeError(error, false);
}
