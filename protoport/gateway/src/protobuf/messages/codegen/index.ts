/** Generates code at run time: compiles the functions that `binary/` and `json/` generate for one message type. */
export { type CodegenOptions, compileFunction, canCompile } from "./compile-function.ts";
export { isInherited, type MessageClass, messageClass } from "./message-class.ts";
export { memoize } from "./memoize.ts";
export { switchSource } from "./switch-source.ts";
export { literal, TypeScope } from "./type-scope.ts";
export { bailOut, throwBailOut } from "./bail-out.ts";
