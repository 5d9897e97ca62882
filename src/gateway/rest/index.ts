export type { RestBinding } from "./binding.ts";
export { createStatusRecord, type ErrorRecordPolicy, errorToRest, type RestFailure } from "./error-to-rest.ts";
export { httpStatusOf } from "./http-status.ts";
export { createRestRouter, type RestRouter } from "./rest-router.ts";
