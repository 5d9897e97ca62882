/** The entry `@protoport/gateway/validation`. Only programs that import the entry load the code for validation. */
export { openValidation, type ValidationOptions, type Validation } from "./validation/index.ts";
