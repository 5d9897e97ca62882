/** Creates and inspects call errors. A call error is a `ConnectError` with an identifier such as `ERR_NO_ROUTE`. */
export {
  errorCodeOf,
  optionOf,
  problem,
  type ProblemDetails,
  problemStatusOf,
  type OptionLabels,
  withDetails,
  withMessage,
  withOption,
} from "./problem.ts";
