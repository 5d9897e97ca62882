/**
 * Which options does an object of options have, and which name was meant? Every function that has options refuses the
 * names that it does not know: in JavaScript no compiler does, and a limit or a check with a misspelled name would be
 * off without a word. Nor do they accept a promise where a callback must return its result.
 */
export { findMisspelled, nearestName } from "./nearest-name.ts";
export { type OptionNames, refuseUnknownOptions, required, requireObject } from "./option-names.ts";
export { refusePromise } from "./refuse-promise.ts";
