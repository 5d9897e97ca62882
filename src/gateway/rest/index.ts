export type { RestBinding } from "./binding.ts";
export type { OnIgnored } from "./request-reader.ts";
export type { RequestStream } from "./request-stream.ts";
export {
  codeNames,
  createErrorWriter,
  type ErrorRecord,
  type ErrorRecordPolicy,
  type ErrorWriter,
  errorWithHttpStatus,
  httpStatusOf,
  type RestFailure,
} from "./error-to-rest.ts";
export { type OutsideHttpRule, parseHttpRules } from "./http-rule.ts";
export { streamContentTypes, type StreamForm, streamFormsOf } from "./stream-form.ts";
export {
  createRestRouter,
  type RestMatch,
  type RestRouter,
  type RestRouterOptions,
  type RouteConstraints,
} from "./rest-router.ts";
export { findField, leafOf, resolveFieldPath } from "./field-path.ts";
export {
  type PathTemplate,
  printPathTemplate,
  printTemplateLiteral,
  type TemplateSegment,
  type TemplateVariable,
} from "./path-template.ts";
