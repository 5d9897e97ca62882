import { Code, type ConnectError } from "@connectrpc/connect";
import { codedError } from "../errors/index.ts";
import { clientClosedRequest, clientGone, type HttpProblem } from "../carriers/index.ts";

/** Returns the error of a request that gets no further as HTTP. */
export function httpError({ errorCode, httpStatus, message }: HttpProblem): ConnectError {
  return codedError(errorCode, message, codes[httpStatus] ?? Code.InvalidArgument);
}

/** Returns the error that a call ends with when its client has gone away. */
export function goneAway(): ConnectError {
  return httpError(clientGone());
}

const codes: Readonly<Record<number, Code>> = {
  413: Code.ResourceExhausted,
  414: Code.ResourceExhausted,
  429: Code.ResourceExhausted,
  431: Code.ResourceExhausted,
  [clientClosedRequest]: Code.Canceled,
  500: Code.Internal,
  503: Code.Unavailable,
};
