/** Request validation by the rules of `buf.validate`, with protovalidate. */
export { openValidation, type ValidationOptions } from "./open-validation.ts";
export type { Validation } from "@plantstore/serve";
