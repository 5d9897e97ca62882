/**
 * Code generation at run time: functions for one message type, with which `binary/` and `json/` read and write messages
 * of that type. `binary/` and `json/` generate the source; this module compiles it.
 */
export { type CodegenOptions, compileFunction, canCompile } from "./compile-function.ts";
export { isInherited, type MessageClass, messageClass } from "./message-class.ts";
export { memoize } from "./memoize.ts";
export { switchSource } from "./switch-source.ts";
export { literal, TypeScope } from "./type-scope.ts";
export { throwBailOut as bail, bailOut } from "./bail-out.ts";
