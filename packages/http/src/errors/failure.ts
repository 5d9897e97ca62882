import type { GatewayErrorCode, ProblemName } from "./problems.ts";

/** A server-side failure: its identifier, and a description for people. */
export interface Failure {
  readonly errorCode: GatewayErrorCode;
  readonly what: string;
}

/** A failed request, whose response is an error. */
export interface RequestFailure extends Failure {
  readonly errorCode: ProblemName;
}

/** Adds the identifier as `code`, as in node's errors, to an error that is thrown to the application. */
export function withCode<E extends Error>(error: E, code: GatewayErrorCode): E {
  return Object.assign(error, { code });
}
