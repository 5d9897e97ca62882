/** The entry `@protoport/gateway/options`, which exports checks for options. */
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
} from "./http/index.ts";
