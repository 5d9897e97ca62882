/**
 * Which message is this JSON? Strict proto3 JSON, with int64 read from the source text and never through a double.
 *
 * A value in a URL is spelled as in JSON, too: url-text-parser reads one, the readers read JSON bodies.
 */
export {
  type ReadJsonOptions,
  createJsonFieldReader,
  type JsonReadResult,
  readJson,
  readPartialJson,
} from "./read-json.ts";
export { type WriteJsonOptions, anyToJson, createJsonFieldWriter, writeJson } from "./write-json.ts";
export { type FieldSetter, type FieldValues, createFieldSetter, asFieldValues, loadField } from "./field-values.ts";
export { parseBase64 } from "./base64.ts";
export { FieldProblem, printPath, quote } from "./field-problem.ts";
export type { BoundFields, ReadNotes } from "./read-context.ts";
export { hasRequiredFields, isRequiredField, requireFields } from "./required-fields.ts";
export { UnknownNames } from "./unknown-names.ts";
export { isUnknownEnumName } from "./enums.ts";
export { createUrlTextParser, type UrlTextParser } from "./url-text-parser.ts";
export { createReachableRegistry } from "./reachable-types.ts";
