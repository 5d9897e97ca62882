/**
 * The REST mapping that the `google.api.http` rules of RPCs define.
 *
 * At start, compile-routes compiles the rules into bindings and a path trie. The steps per request are match
 * (route-table) → decode (request-reader) → (the RPC) → encode (response-body), or error-to-rest. The module uses
 * service descriptors and no sockets.
 */
export { hasResponseStream, type RestBinding, type RestResponse } from "./binding.ts";
export { curlHint, prettyType, protobufTypes } from "./body-format.ts";
export type { RequestStream } from "./request-stream.ts";
export {
  codeNames,
  createErrorRecordWriter,
  type ErrorRecord,
  type ErrorRecordPolicy,
  type ErrorResponse,
  type ErrorRecordWriter,
  httpStatusOf,
  type RestFailure,
  withDetailTypes,
} from "./error-to-rest.ts";
export {
  createHttpRuleFinder,
  type ExternalHttpRule,
  type HttpPattern,
  parseHttpRules,
  procedureOf,
  RuleProblem,
  selectorOf,
  toHttpPatterns,
} from "./http-rule.ts";
export { createRawReader, isHttpBodyType, isMediaType } from "./http-body.ts";
export {
  type ErrorBody,
  errorBodyProblems,
  type ErrorPlaceholder,
  fillErrorBody,
  placeholderOf,
} from "./error-body.ts";
export { type ErrorForm, errorFormats } from "./error-forms.ts";
export type { SelectFields } from "./field-selection.ts";
export { type RestProfile, restProfiles, type RestServiceOptions } from "./service-options.ts";
export { serverSentEvents, type StreamForm } from "./stream-form.ts";
export {
  compileInSteps,
  compileRestRoutes,
  describeBinding,
  type RestMatch,
  type RestRoutes,
  type RouteConstraints,
  checkRestRoutes,
  fixedPathOf,
} from "./compile-routes.ts";
export {
  contentTypeOf,
  errorFormOf,
  type OnIgnored,
  type RestOptions,
  type RestRouteOptions,
  restOptionNames,
  serviceOptionsOf,
  withoutRpcs,
} from "./rest-options.ts";
export { type FieldPath, findProtoField, leafOf, resolveProtoPath } from "./field-path.ts";
export {
  isMultiSegment,
  parsePathTemplate,
  type PathTemplate,
  printPathTemplate,
  printTemplateLiteral,
  type TemplateSegment,
  type TemplateVariable,
} from "./path-template.ts";
export { parameterNameOf, maxParameterNames } from "./parameters.ts";
export { compilePathVariables } from "./path-variables.ts";
export { bindBody } from "./request-body.ts";
export { createNameFilter, findParameter, unmatchedPatterns } from "./query.ts";
export { anyMethod, type RouteShape, routesOverlap, RouteTable, templatesOverlap } from "./route-table.ts";
