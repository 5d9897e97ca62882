/** The entry `@plantstore/gateway/validation`: request validation. Loaded only by programs that use it. */
export { openValidation, type ValidationOptions, type Validation } from "@plantstore/validation";
