/**
 * Which code is made at run time? Functions for one message type each, by which `binary/` and `json/` read and write its
 * messages, and whatever else is made once for each. What they consist of is the matter of those rooms. No sockets.
 */
export { type CodegenOptions, makeFunction, mayMakeCode } from "./make-function.ts";
export { isInherited, type MessageClass, messageClass } from "./message-class.ts";
export { oncePer } from "./once-per.ts";
export { switchText } from "./switch-text.ts";
export { literal, TypeScope } from "./type-scope.ts";
export { refuse, unsure } from "./unsure.ts";
