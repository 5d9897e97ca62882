export type { OnIgnored, RestBinding, RestRequest } from "./binding.ts";
export { negotiateContentCoding, readContentCodings } from "./content-coding.ts";
export { type Cors, type CorsOptions, type CorsRequest, createCors } from "./cors.ts";
export {
  createStatusRecord,
  type ErrorRecord,
  type ErrorRecordPolicy,
  errorToRest,
  type RestFailure,
} from "./error-to-rest.ts";
export { type OutsideHttpRule, parseHttpRules } from "./http-rules-config.ts";
export { errorWithHttpStatus, httpStatusOf } from "./http-status.ts";
export type { RestResponse } from "./response-body.ts";
export { isFieldValue, toRestFields } from "./response-header.ts";
export { createRestRouter, type RestMatch, type RestRouter, type RestRouterOptions } from "./rest-router.ts";
export { readRestTimeout } from "./rest-timeout.ts";
export { TextIndex } from "./text-index.ts";
