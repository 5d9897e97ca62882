import type { GatewayErrorCode, ProblemName } from "./problems.ts";

/** A server-side failure with an error identifier and a description for people. */
export interface Failure {
  readonly errorCode: GatewayErrorCode;
  readonly what: string;
}

/** A failed request. The client gets an error response. */
export interface RequestFailure extends Failure {
  readonly errorCode: ProblemName;
}

/** Adds the identifier to an error that is thrown to the application. The property is `code`, as in node's errors. */
export function withCode<E extends Error>(error: E, code: GatewayErrorCode): E {
  return Object.assign(error, { code });
}
