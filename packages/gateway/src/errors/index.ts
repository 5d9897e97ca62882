/**
 * The stable identifiers of errors: of refused requests, of faults, and of errors that the gateway throws to the
 * application. Logs and alerts match on these, because messages may change. `identifiers/problems.ts` has an entry for each;
 * docs/reference/errors.md explains them.
 */
export {
  type NamedOption,
  type Failure,
  type GatewayErrorCode,
  type ProblemName,
  problems,
  type RequestFailure,
  withCode,
} from "./identifiers/index.ts";
export { toOneLine, toShortLine } from "./short-line.ts";
export { messageOf } from "./message-of.ts";
export {
  errorCodeOf,
  optionOf,
  problem,
  type ProblemDetails,
  problemStatusOf,
  type OptionLabels,
  withMessage,
  withOption,
} from "./problem.ts";
export { isProduction } from "./is-production.ts";
