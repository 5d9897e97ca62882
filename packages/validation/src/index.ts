/** Request validation by the `buf.validate` rules, with protovalidate. */
export { openValidation, type ValidationOptions } from "./open-validation.ts";
export type { Validation } from "@plantstore/serve";
