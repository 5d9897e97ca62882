/**
 * What is each error called? The stable identifiers of what the gateway refuses, of its faults, and of what it throws
 * at the program that embeds it: logs and alerts match these, because messages may change. `problems.ts` has a row for
 * each; docs/reference/errors.md and docs/reference/identifiers.md explain them.
 */
export { type Failure, type RequestFailure, withCode } from "./failure.ts";
export { clipped } from "./clipped.ts";
export { messageOf } from "./message-of.ts";
export {
  errorCodeOf,
  type GatewayErrorCode,
  problem,
  type ProblemDetails,
  type ProblemName,
  problems,
  problemStatusOf,
  withMessage,
} from "./problems.ts";
