/**
 * Which message is this JSON? Strict proto3 JSON, with int64 read from the source text and never through a double.
 *
 * Flow: bytes → UTF-8 text → the value that `JSON.parse` makes of it (parse-plain) → message, by code that is made for
 * its type (made-reader, plain-values, and value-messages for google.protobuf.Value). Where that may lose something, and where something is wrong,
 * the text is read once more: tokens (json-scanner) → fields by descriptor (message-reader, field-reader,
 * well-known-readers) → message, or what is wrong with which field. That way is the truth, the other one is five times
 * as fast. A value in a URL is spelled as in JSON, too: text-forms parses both.
 *
 * Where no code may be made at all, as in pages, read-exact is used by itself.
 *
 * Back: message → objects, by code that is made for its type (made-writer), or without code by closures (message-forms),
 * of the same forms of values (json-forms, json-elements) → text, by `JSON.stringify`.
 */
export { type BodyRules, createJsonFieldReader, type JsonFieldReader, readJson, readPartialJson } from "./read-json.ts";
export { readJsonExactly } from "./read-exact.ts";
export {
  jsonOptionNames,
  type ReadJsonOptions,
  readJsonOptionNames,
  type ReadServiceJsonOptions,
} from "./read-options.ts";
export { anyToJson, createJsonFieldWriter, createJsonMessageWriter, type WriteJsonOptions } from "./write-json.ts";
export { createFieldForm, createMessageForms } from "./message-forms.ts";
export type { JsonStyle } from "./write-context.ts";
export {
  asFieldValues,
  createFieldSetter,
  type FieldSetter,
  type FieldValues,
  loadField,
  localFormOf,
  refuseOtherMember,
  setOwn,
} from "./field-values.ts";
export { hasCustomJsonRepresentation } from "./custom-form.ts";
export { FieldProblem, quote } from "./field-problem.ts";
export type { BoundFields, FieldNotes } from "./read-context.ts";
export { hasRequiredFields, isRequiredField, requireFields } from "./required-fields.ts";
export { UnknownNames } from "./unknown-names.ts";
export { integerRangeOf } from "./numbers.ts";
export { findField, isUnknownEnumName, jsonNameOf } from "./names.ts";
export { createUrlEntryParser, createUrlTextParser, type UrlTextParser } from "./text-forms.ts";
export { oncePer } from "../codegen/index.ts";
export { createReachableRegistry } from "./reachable-types.ts";
