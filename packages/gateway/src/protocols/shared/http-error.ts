import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";
import { clientGone, type HttpProblem } from "../../exchange/index.ts";

/** Returns the error of a request that gets no further as HTTP. */
export function httpError({ errorCode, message, code, httpStatus }: HttpProblem): ConnectError {
  return problem(errorCode, message, { code, httpStatus });
}

/** Returns the error that a call ends with when its client has gone away. */
export function goneAway(): ConnectError {
  return httpError(clientGone());
}
