/** The entry `@protoport/gateway/options`, which exports checks for options. */
export {
  arrayOf,
  findMisspelled,
  integerBetween,
  isProduction,
  matcherOf,
  NamePatterns,
  nearestName,
  type OptionNames,
  refuseIgnoredOptions,
  refusePromise,
  refuseUnknownOptions,
  required,
  requireName,
  requireObject,
  stringOr,
  withDefaultLimits,
} from "./http/index.ts";
