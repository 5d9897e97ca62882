/** Call errors: a `ConnectError` with a problem's identifier. */
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
