/**
 * How is a setting read? A setting type reads a value from a file, a flag or an environment variable, and reports what
 * a wrong value must be. Each program has one table of settings with these types.
 */
export { findLocated, type Located, type LocatedValue, memberPath, ofSource, subjectOf } from "./located.ts";
export type { JsonSchema, Members, MembersOf, ReportProblem, Setting, SettingFlag, SettingType } from "./setting.ts";
export {
  boolean,
  formatted,
  integer,
  isOrigin,
  list,
  mapping,
  number,
  oneOf,
  positiveNumber,
  publicUrl,
  quote,
  record,
  text,
  withoutPassword,
} from "./setting-types.ts";
