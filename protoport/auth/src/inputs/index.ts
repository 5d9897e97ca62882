/** Inputs: parse results of settings and files, messages for system errors, watched files and loopback hosts. */
export type { AuthErrorCode } from "./error-code.ts";
export { explainSystemError, readTextFile, toProblem, withoutLineEnd } from "./text-file.ts";
export { isLoopback } from "./loopback.ts";
export type { FileReload, OperatorLog } from "./reload-record.ts";
export { withProblems, parsed, type ParseResult, problemsOf } from "./parse-result.ts";
export { type WatchedFile, watchFile } from "./watched-file.ts";
