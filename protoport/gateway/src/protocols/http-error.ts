import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../protobuf/index.ts";
import { clientGoneProblem, type HttpProblem } from "../http/index.ts";

/** Returns the error for an HTTP problem. */
export function httpError({ errorCode, message, code, httpStatus, option }: HttpProblem): ConnectError {
  return problem(errorCode, message, { code: Code[code], httpStatus, option });
}

/** Returns the error for a call whose client has disconnected or cancelled it. */
export function clientGoneError(): ConnectError {
  return httpError(clientGoneProblem());
}
