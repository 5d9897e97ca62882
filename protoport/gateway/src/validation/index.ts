/** Validates requests with protovalidate, by the `buf.validate` rules in the definition. */
export { openValidation, type ValidationOptions } from "./open-validation.ts";
export type { Validation } from "../serve/index.ts";
