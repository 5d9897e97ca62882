import type { DescField, JsonValue } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import {
  createFieldForm,
  createMessageForms,
  createUrlTextParser,
  type FieldValues,
  type JsonStyle,
} from "@plantstore/gateway/internal/messages/json";
import { Refusal, refuseUnwritable } from "./refusal.ts";

/**
 * Returns the texts of a field in a message, as a URL has them: one for each element of a repeated field, none if the
 * field is not set.
 *
 * @throws Refusal for a value that the field cannot have
 */
export type UrlTextWriter = (fields: FieldValues) => readonly string[];

/** The writers of fields whose values have a text form; `undefined` for a map, and for most messages. */
export type UrlTexts = (field: DescField) => UrlTextWriter | undefined;

/** Creates the writers, which spell values as JSON does, without the quotes, and bytes with the alphabet of URLs. */
export function createUrlTexts(style: JsonStyle): UrlTexts {
  const forms = createMessageForms(style);
  const known = new WeakMap<DescField, { readonly write: UrlTextWriter | undefined }>();
  const create = (field: DescField): UrlTextWriter | undefined => {
    // What it parses is what a gateway reads, so that nothing is sent that would be refused.
    const parse = createUrlTextParser(field);
    if (parse === undefined) return undefined;
    const toJson = createFieldForm(field, forms);
    // RFC 4648 §5: a slash would separate segments.
    const toText = isOfBytes(field)
      ? (value: JsonValue) => toUrlText(value).replaceAll("+", "-").replaceAll("/", "_")
      : toUrlText;
    return (fields) =>
      refuseUnwritable(field.name, () => {
        const value = toJson(fields);
        if (value === undefined) return [];
        const texts = (field.fieldKind === "list" && Array.isArray(value) ? value : [value]).map(toText);
        for (const text of texts) parse(text);
        return texts;
      });
  };
  return (field) => {
    let found = known.get(field);
    if (found === undefined) known.set(field, (found = { write: create(field) }));
    return found.write;
  };
}

function isOfBytes({ scalar, message }: DescField): boolean {
  return scalar === ScalarType.BYTES || message?.typeName === "google.protobuf.BytesValue";
}

function toUrlText(value: JsonValue): string {
  // Of the fields that have texts, only a google.protobuf.NullValue is null in JSON.
  if (value === null) return "NULL_VALUE";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Escapes a text for a URL: everything but the unreserved characters of RFC 3986 §2.3, as google/api/http.proto wants.
 *
 * @throws Refusal for a lone surrogate, which UTF-8 does not have
 */
export function escapeUrlText(name: string, text: string): string {
  try {
    return encodeURIComponent(text).replaceAll(
      /[!'()*]/g,
      (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  } catch {
    throw new Refusal(`${name}: has a lone surrogate, which UTF-8 cannot encode`);
  }
}
