/**
 * Functions that check options. Every function with options rejects unknown names, because a limit with a misspelled
 * name would have no effect. JavaScript has no compiler that reports a misspelled name. This module also rejects
 * promises from callbacks that must be synchronous.
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
