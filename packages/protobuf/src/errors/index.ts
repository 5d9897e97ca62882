/** Errors of calls: a `ConnectError` with the identifier of a problem. */
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
