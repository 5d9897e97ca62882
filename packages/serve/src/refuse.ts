import type { Exchange, HttpProblem, Failure } from "@plantstore/http";
import { httpError, type Protocol, type Refusal } from "@plantstore/protocols";
import { addCorsFields } from "./cors.ts";
import { errorToSend, type Server } from "./server.ts";

/**
 * Responds to a request that never becomes a call. Never throws. If the response cannot be written, resets the exchange
 * and reports the error.
 */
export function refuse(
  exchange: Exchange,
  protocol: Pick<Protocol, "refuse">,
  refusal: Refusal,
  report: (error: unknown, failure: Failure) => void,
): void {
  try {
    protocol.refuse(exchange, refusal);
  } catch (error) {
    exchange.reset();
    report(error, { errorCode: "ERR_RESPONSE_FAILED", what: "cannot write the error response" });
  }
}

/** Responds in the REST format to a request that is not valid HTTP. Never throws. */
export function refuseProblem(server: Server, exchange: Exchange, problem: HttpProblem): void {
  const { httpStatus } = problem;
  const { cors } = server.routes;
  if (cors !== undefined) addCorsFields(exchange, cors, "");
  const refusal = {
    httpStatus,
    error: errorToSend(httpError(problem), server),
    fields: [],
    rpc: undefined,
    target: undefined,
  };
  refuse(exchange, server.routes.protocols.rest, refusal, server.report);
}
