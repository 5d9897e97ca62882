import type { Exchange, HttpProblem } from "../http/index.ts";
import { httpError } from "../protocols/index.ts";
import { addCorsFields } from "./cors.ts";
import { errorToSend, type Server } from "./server.ts";

/** Responds in the REST format to a request that is not valid HTTP. */
export function refuseProblem(server: Server, exchange: Exchange, problem: HttpProblem): void {
  const { cors, protocols } = server.routes;
  if (cors !== undefined) addCorsFields(exchange, cors, "");
  const error = errorToSend(httpError(problem), server);
  void protocols.rest.openError(exchange, [], undefined).writeError(error, false);
}
