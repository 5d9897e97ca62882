import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";
import { clientGone, type HttpProblem } from "../../exchange/index.ts";

/** Returns the error for a problem of HTTP. */
export function httpError({ errorCode, message, code, httpStatus, option }: HttpProblem): ConnectError {
  return problem(errorCode, message, { code: Code[code], httpStatus, option });
}

/** Returns the error of a call whose client has disconnected or cancelled it. */
export function clientGoneError(): ConnectError {
  return httpError(clientGone());
}
