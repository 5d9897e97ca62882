import type { ContextValues } from "@connectrpc/connect";
import { problem } from "../protobuf/index.ts";
import type { ProtocolName } from "../protocols/index.ts";
import {
  type CurrentServer,
  findTarget,
  refuseProblem,
  serve,
  type Server,
  type Target,
  unmatchedTarget,
} from "../serve/index.ts";
import {
  bodyConsumedProblem,
  type HttpProblem,
  type Limits,
  type Peer,
  checkRequestHead,
  FetchExchange,
} from "../http/index.ts";

/** Information about a request that the Fetch `Request` does not contain. */
export interface FetchContext {
  /** The peer of the connection. Defaults to an empty address. */
  readonly peer?: Peer;
  /** The call's initial context values. Calls must not share an object, because hooks set the caller's values in it. */
  readonly contextValues?: ContextValues;
  /** Called before `admit` if no route matches. The handler returns the response of `next`. */
  readonly next?: () => Response | Promise<Response>;
}

/**
 * Handles a Fetch `Request`. Rejects only if `next` rejects. If the client disconnects before the response, the status
 * is 499. If the response cannot be written, the status is 500.
 */
export type FetchHandler = (request: Request, context?: FetchContext) => Promise<Response>;

/** Creates a gateway's handler for Fetch requests. */
export function createFetchHandler(current: CurrentServer): FetchHandler {
  return async (request, { peer, contextValues, next } = {}) => {
    const { server } = current;
    const exchange = new FetchExchange(request, peer);
    const httpProblem = requestProblemOf(exchange, server.limits);
    const target = findTarget(server.routes, exchange);
    if (target.kind === "unmatched" && target.isUnknownPath && next !== undefined) {
      exchange.handOver();
      return await next();
    }
    if (httpProblem !== undefined) refuseProblem(server, exchange, httpProblem);
    else if (exchange.isBodyRead) refuseProblem(server, exchange, bodyConsumedProblem());
    else serve(server, exchange, withoutGrpc(target, server), () => contextValues);
    return await exchange.response;
  };
}

function requestProblemOf(
  { common, host, httpMethod, target }: FetchExchange,
  limits: Limits,
): HttpProblem | undefined {
  const targetOrProblem = checkRequestHead(httpMethod, target, host, true, common.listBytes, limits);
  return typeof targetOrProblem === "string" ? undefined : targetOrProblem;
}

/**
 * Whether responses in a protocol end with trailers, as in gRPC (gRPC over HTTP/2, "Responses"). A `Response` cannot
 * have trailers.
 */
const endsWithTrailers: Readonly<Record<ProtocolName, boolean>> = {
  connect: false,
  grpc: true,
  "grpc-web": false,
  mcp: false,
  rest: false,
};

/** Returns the target of a request, or a target that refuses the request if the protocol is gRPC. */
function withoutGrpc(target: Target, { routes }: Server): Target {
  if (!endsWithTrailers[target.protocol.name] || target.kind === "unmatched") return target;
  const error = problem("ERR_CONTENT_TYPE", "gRPC is not supported here; use gRPC-Web");
  return unmatchedTarget(routes.protocols.rest, error, target.rpc);
}
