/**
 * Option checks. Every function with options rejects unknown names, because in JavaScript no compiler does, and a limit
 * or a check with a misspelled name would silently be off. The check also rejects a promise from a callback that must
 * return its result.
 */
export { findMisspelled, nearestName } from "./nearest-name.ts";
export {
  arrayOf,
  arrayOfStrings,
  type OptionNames,
  refuseIgnoredOptions,
  refuseUnknownOptions,
  required,
  requireName,
  requireObject,
  stringOr,
} from "./option-names.ts";
export { refusePromise } from "./refuse-promise.ts";
