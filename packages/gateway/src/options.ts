/** The entry `@plantstore/gateway/options`: checks of options. */
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
