import type { DescField, DescMessage, JsonObject } from "@bufbuild/protobuf";
import type { OpenApiSchema } from "./open-api-document.ts";

/** Describes the rules that a server checks in addition to the field types, such as `buf.validate` rules. */
export interface FieldRules {
  /** Returns the keywords for a field's rules, or `undefined` if JSON Schema cannot express any of the rules. */
  keywordsOf(field: DescField): FieldKeywords | undefined;
  /** Returns whether a message without this field is invalid. */
  isRequired(field: DescField): boolean;
  /**
   * Returns an array with one example for a field's value, or for one element in a list or map. Returns `[]` if no
   * example is found for the field's rules, and `undefined` for a field without rules.
   */
  exampleOf(field: DescField): readonly (string | number | boolean)[] | undefined;
  /** Returns whether the server accepts an example message. */
  accepts(type: DescMessage, json: JsonObject): boolean;
}

/** JSON Schema keywords for a field's value, elements and keys. */
export interface FieldKeywords {
  /** The keywords for the complete value, such as a list's array or a map's object. */
  readonly value?: OpenApiSchema;
  /** The keywords for each list element, or each map value. */
  readonly element?: OpenApiSchema;
  /** The keywords for each map key. */
  readonly key?: OpenApiSchema;
}
