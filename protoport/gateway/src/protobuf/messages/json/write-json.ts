import type { DescField, DescMessage, JsonObject, JsonValue, JsonWriteOptions, Message } from "@bufbuild/protobuf";
import { valueToJson } from "./json-elements.ts";
import { jsonFormOf, packedToJson } from "./json-forms.ts";
import { compileForm } from "./compiled-writer.ts";
import { createFieldForm, createMessageForms, zeroOf } from "./message-forms.ts";
import { memoize } from "../codegen/index.ts";
import type { JsonStyle, MessageForms } from "./write-context.ts";

/** Connect's options for {@link createJsonMessageWriter}. */
export type WriteJsonOptions = Partial<JsonWriteOptions>;

const noOptions: WriteJsonOptions = {};

/**
 * Creates the function that writes a type's messages as proto3 JSON text. By default, 64-bit integers are strings, and
 * fields that are not set are omitted. The function is compiled when it is first called.
 *
 * The function throws an Error if a message cannot be written, which is the handler's mistake. Examples are a Timestamp
 * out of range, an Any with a type that the registry lacks, a field mask without a JSON form, and a number in a string
 * field.
 */
export function createJsonMessageWriter(
  desc: DescMessage,
  options: JsonStyle = noOptions,
): (message: Message) => string {
  const form = formsOf(options).writerOf(desc);
  return (message) => JSON.stringify(form.toJson(message));
}

/** Creates the function that writes one field, even with its zero value. The function ignores all other fields. */
export function createJsonFieldWriter(field: DescField, options: JsonStyle): (message: Message) => string {
  const forms = formsOf(options);
  const toJson = createFieldForm(field, forms);
  const zero = zeroToJson(field, forms);
  return (message) => JSON.stringify(toJson(message) ?? zero);
}

function zeroToJson(field: DescField, forms: MessageForms): JsonValue {
  switch (field.fieldKind) {
    case "list":
      return [];
    case "map":
      return {};
    case "message":
      return null;
    default:
      return valueToJson(zeroOf(field), jsonFormOf(field, forms));
  }
}

/** Converts a message to an Any's JSON: `@type` with its fields, or with `value` if the type has its own JSON form. */
export function anyToJson(typeUrl: string, desc: DescMessage, message: Message, options: JsonStyle): JsonObject {
  const json: JsonObject = JSON.parse(JSON.stringify(packedToJson(typeUrl, desc, message, formsOf(options))));
  return json;
}

// Compiled writers are cached as long as the options object exists. A gateway has one options object.
const formsOf = memoize((options: JsonStyle) => createMessageForms(options, compileForm));
