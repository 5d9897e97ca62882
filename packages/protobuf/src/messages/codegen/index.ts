/**
 * Code generation at run time: functions with which `binary/` and `json/` read and write one message type. `binary/`
 * and `json/` generate the source. This module compiles it.
 */
export { type CodegenOptions, compileFunction, canCompile } from "./compile-function.ts";
export { isInherited, type MessageClass, messageClass } from "./message-class.ts";
export { memoize } from "./memoize.ts";
export { switchSource } from "./switch-source.ts";
export { literal, TypeScope } from "./type-scope.ts";
export { throwBailOut as bail, bailOut } from "./bail-out.ts";
