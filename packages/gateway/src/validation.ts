/** The entry `@plantstore/gateway/validation`, for request validation. Only programs that import it load its code. */
export { openValidation, type ValidationOptions, type Validation } from "@plantstore/validation";
