/**
 * Reads and writes proto3 JSON strictly. An int64 is read from the source text and never through a double.
 *
 * Fast path for reading: bytes → UTF-8 text → `JSON.parse` (parse-plain) → message, by code generated for its type
 * (compiled-reader, plain-values). If the fast path could lose
 * information, or the text is invalid, the exact reader reads the text again: tokens (json-scanner) → fields by
 * descriptor (read-exact, field-reader, well-known-readers) → message, or an error that names the field. The exact
 * reader defines the result. The fast path is five times as fast. text-forms parses values in URLs, which are spelled
 * as in JSON, and text values in JSON.
 *
 * Platforms that never allow code generation, such as web pages, use only read-exact.
 *
 * Writing: message → objects, by generated code (write-json) or by closures (message-forms), with the same value
 * forms (json-forms, json-elements) → text, by `JSON.stringify`.
 */
export {
  type BodyRules,
  createJsonFieldReader,
  type JsonFieldReader,
  type JsonReadResult,
  readJson,
  readPartialJson,
} from "./read-json.ts";
export { readJsonExactly, toText } from "./read-exact.ts";
export {
  createReachableRegistry,
  ignoredJsonOptions,
  jsonOptionNames,
  readJsonOptionNames,
  type ReadJsonOptions,
  type ReadServiceJsonOptions,
} from "./read-options.ts";
export { anyToJson, createJsonFieldWriter, createJsonMessageWriter, type WriteJsonOptions } from "./write-json.ts";
export { createFieldForm, createMessageForms } from "./message-forms.ts";
export type { JsonStyle } from "./json-elements.ts";
export {
  asFieldValues,
  createFieldSetter,
  type FieldSetter,
  type FieldValues,
  loadField,
  type LocalForm,
  localFormOf,
  refuseOtherMember,
  setOwn,
} from "./field-values.ts";
export { hasCustomJsonRepresentation, hasObjectForm } from "./custom-form.ts";
export { FieldProblem, quoteValue, UnknownNames } from "./field-problem.ts";
export { JsonScanner } from "./json-scanner.ts";
export type { BoundFields, FieldNotes } from "./read-context.ts";
export { hasRequiredFields, isRequiredField, requireMessageFields } from "./required-fields.ts";
export { integerRangeOf } from "./numbers.ts";
export { findField, jsonNameOf } from "./names.ts";
export { parseGoDuration } from "./times.ts";
export { createUrlEntryParser, createUrlTextParser, type UrlTextParser } from "./text-forms.ts";
export { memoize } from "../codegen.ts";
export { shortestFloat } from "./shortest-float.ts";
