import { type Exchange, type HttpProblem, noBytes } from "../carriers/index.ts";
import type { Failure } from "../errors/index.ts";
import { httpError, type Protocol, type Refusal } from "../protocols/index.ts";
import { curlHint } from "../rest/index.ts";
import type { Server } from "./server.ts";

/**
 * Answers a request that never becomes a call, in the form of its protocol. Never throws: a response that cannot be
 * written resets the exchange and is reported.
 */
export function refuse(
  { routes: { protocols } }: Pick<Server, "routes">,
  exchange: Exchange,
  protocol: Protocol,
  refusal: Refusal,
  report: (error: unknown, failure: Failure) => void,
): void {
  const { httpStatus, fields, rpc } = refusal;
  const wrongMethod = httpStatus === 405;
  const isNotRpcCall = rpc !== undefined && (wrongMethod || httpStatus === 415);
  try {
    if (isNotRpcCall && protocols.hasDefaultErrors && !looksLikeCurl(exchange)) {
      exchange.answer(httpStatus, fields, noBytes);
    } else if (wrongMethod) {
      // A wrong method is an error of HTTP, and matches no RPC even where there is one at the path.
      wrongMethodOf(protocol, protocols.rest).refuse(exchange, { ...refusal, rpc: undefined });
    } else protocol.refuse(exchange, refusal);
  } catch (error) {
    exchange.reset();
    report(error, { errorCode: "ERR_ANSWER_FAILED", what: "a refusal could not be written" });
  }
}

/** Answers an exchange that is wrong as HTTP, as REST does. Never throws. */
export function refuseProblem(server: Server, exchange: Exchange, problem: HttpProblem): void {
  const { httpStatus } = problem;
  const refusal = { httpStatus, error: httpError(problem), fields: [], rpc: undefined, target: undefined };
  refuse(server, exchange, server.routes.protocols.rest, refusal, server.report);
}

function wrongMethodOf(protocol: Protocol, rest: Protocol): Protocol {
  return protocol.hasHttpStatus ? protocol : rest;
}

/**
 * Returns whether a request looks like one of `curl -d` or `curl -X POST`, whose response explains what is wrong. Clients
 * of Connect and gRPC take JSON at an RPC's path for an error of their protocol, or ignore it, so by default they get a
 * status without a body. None of them posts a form, or omits the content type.
 */
function looksLikeCurl({ httpMethod, common: { contentType } }: Exchange): boolean {
  return httpMethod === "POST" && (contentType === null || curlHint(contentType) !== "");
}
