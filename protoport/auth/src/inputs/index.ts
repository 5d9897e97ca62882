/** Inputs: parse results of settings and files, messages for system errors, watched files and loopback hosts. */
export type { AuthErrorCode } from "./error-code.ts";
export {
  explainSystemError,
  parsed,
  type ParseResult,
  problemsOf,
  readTextFile,
  toProblem,
  withoutLineEnd,
  withProblems,
} from "./text-file.ts";
export { isLoopback } from "./loopback.ts";
export type { FileReload, OperatorLog } from "./reload-record.ts";
export { type WatchedFile, watchFile } from "./watched-file.ts";
