/** Inputs: parse results of settings and files, messages for system errors, watched files and loopback hosts. */
export type { AuthErrorCode } from "./error-code.ts";
export { explainSystemError } from "./explain-system-error.ts";
export { isLoopback } from "./loopback.ts";
export type { OperatorLog } from "./operator-log.ts";
export { withProblems, parsed, type ParseResult, problemsOf } from "./parse-result.ts";
export type { FileReload } from "./reload-record.ts";
export { readTextFile, toProblem } from "./text-file.ts";
export { type WatchedFile, watchFile } from "./watched-file.ts";
export { withoutLineEnd } from "./without-line-end.ts";
