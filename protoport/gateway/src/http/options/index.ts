/**
 * Functions that check options. Unknown names are rejected, because JavaScript has no compiler that reports a
 * misspelled name. Promises from callbacks that must be synchronous are also rejected.
 */
export { matcherOf, NamePatterns } from "./name-patterns.ts";
export { findMisspelled, nearestName } from "./nearest-name.ts";
export {
  arrayOf,
  arrayOfStrings,
  integerBetween,
  type OptionNames,
  refuseIgnoredOptions,
  refuseUnknownOptions,
  required,
  requireName,
  requireObject,
  stringOr,
} from "./option-names.ts";
export { refusePromise } from "./refuse-promise.ts";
