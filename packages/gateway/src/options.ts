/** The entry `@plantstore/gateway/options`: option checks. */
export {
  findMisspelled,
  nearestName,
  arrayOf,
  type OptionNames,
  refuseIgnoredOptions,
  refuseUnknownOptions,
  required,
  requireName,
  requireObject,
  stringOr,
  refusePromise,
} from "@plantstore/http";
