/**
 * Stable error identifiers for refused requests, faults, and errors that a package throws to the application. Logs and
 * alerts match on identifiers, because messages may change. `problems.ts` has an entry for each identifier, and
 * protoport/docs/reference/errors.md explains the identifiers. The module is independent of RPC.
 */
export { type Failure, type RequestFailure, withCode } from "./failure.ts";
export { isProduction } from "./is-production.ts";
export { messageOf } from "./message-of.ts";
export { type NamedOption, type CodeName, type GatewayErrorCode, type ProblemName, problems } from "./problems.ts";
export { toOneLine, toShortLine } from "./short-line.ts";
