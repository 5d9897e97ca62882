/**
 * Stable error identifiers: for refused requests, for faults, and for errors that a package throws to the application.
 * Logs and alerts match on identifiers, because messages may change. `problems.ts` has an entry for each;
 * docs/reference/errors.md explains them. Independent of RPC.
 */
export { type Failure, type RequestFailure, withCode } from "./failure.ts";
export { isProduction } from "./is-production.ts";
export { messageOf } from "./message-of.ts";
export { type NamedOption, type CodeName, type GatewayErrorCode, type ProblemName, problems } from "./problems.ts";
export { toOneLine, toShortLine } from "./short-line.ts";
