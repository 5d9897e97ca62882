/**
 * The stable identifiers of errors: of refused requests, of faults, and of errors that the gateway throws to the
 * application. Logs and alerts match on these, because messages may change. `problems.ts` has an entry for each;
 * docs/reference/errors.md and docs/reference/identifiers.md explain them.
 */
export { type Failure, type RequestFailure, withCode } from "./failure.ts";
export { toShortLine } from "./short-line.ts";
export { messageOf } from "./message-of.ts";
export {
  type AcceptingOption,
  errorCodeOf,
  type GatewayErrorCode,
  optionOf,
  problem,
  type ProblemDetails,
  type ProblemName,
  problems,
  problemStatusOf,
  type ShownNames,
  withMessage,
  withOption,
} from "./problems.ts";
