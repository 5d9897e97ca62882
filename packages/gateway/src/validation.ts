/** The entry `@plantstore/gateway/validation`, for request validation. Only its importers load the module's code. */
export { openValidation, type ValidationOptions, type Validation } from "@plantstore/validation";
