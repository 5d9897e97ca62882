/**
 * Generates code at run time. `binary/` and `json/` generate the source of functions that read or write one message
 * type, and this module compiles the source.
 */
export { type CodegenOptions, compileFunction, canCompile } from "./compile-function.ts";
export { isInherited, type MessageClass, messageClass } from "./message-class.ts";
export { memoize } from "./memoize.ts";
export { switchSource } from "./switch-source.ts";
export { literal, TypeScope } from "./type-scope.ts";
export { throwBailOut as bail, bailOut } from "./bail-out.ts";
