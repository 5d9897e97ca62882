import type { GatewayErrorCode, ProblemName } from "./problems.ts";

/** What has failed on the server's side: its identifier, and a text for people. */
export interface Failure {
  readonly errorCode: GatewayErrorCode;
  readonly what: string;
}

/** A failure of a request, which is answered with an error. */
export interface RequestFailure extends Failure {
  readonly errorCode: ProblemName;
}

/** Returns an error for the program that embeds the gateway, with its identifier as `code`, as node's errors have one. */
export function withCode<E extends Error>(error: E, code: GatewayErrorCode): E {
  return Object.assign(error, { code });
}
