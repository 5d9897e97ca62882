import type { GatewayErrorCode, ProblemName } from "./problems.ts";

/** A failure on the server's side: its identifier, and a description for people. */
export interface Failure {
  readonly errorCode: GatewayErrorCode;
  readonly what: string;
}

/** A failure of a request, which gets an error as its response. */
export interface RequestFailure extends Failure {
  readonly errorCode: ProblemName;
}

/** Adds the identifier as `code`, as in node's errors, to an error that is thrown to the application. */
export function withCode<E extends Error>(error: E, code: GatewayErrorCode): E {
  return Object.assign(error, { code });
}
