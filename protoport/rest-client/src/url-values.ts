import type { DescField, JsonValue } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import {
  createFieldForm,
  createMessageForms,
  createUrlTextParser,
  type FieldValues,
  type JsonStyle,
} from "@protoport/gateway/messages";
import { RefusalError, refuseUnwritable } from "./refusal.ts";

/**
 * Returns a field's values as strings for a URL: one for each element of a repeated field, none for an unset field.
 *
 * @throws RefusalError if a value is not valid for the field
 */
type UrlValueWriter = (fields: FieldValues) => readonly string[];

/** Returns a field's writer, or `undefined` if a URL cannot contain the field, such as a map and most messages. */
export type UrlValues = (field: DescField) => UrlValueWriter | undefined;

/** Creates the writers for fields. Values are written as in JSON, but without quotes, and bytes as base64url. */
export function createUrlValues(style: JsonStyle): UrlValues {
  const forms = createMessageForms(style);
  const cachedWriters = new WeakMap<DescField, { readonly write: UrlValueWriter | undefined }>();
  const create = (field: DescField): UrlValueWriter | undefined => {
    // Checks values with the gateway's parser, so that values that the gateway would refuse are not sent.
    const parse = createUrlTextParser(field);
    if (parse === undefined) return undefined;
    const toJson = createFieldForm(field, forms);
    // Bytes are written as base64url, because a base64 slash would separate segments (RFC 4648 §5).
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
    let found = cachedWriters.get(field);
    if (found === undefined) cachedWriters.set(field, (found = { write: create(field) }));
    return found.write;
  };
}

function isOfBytes({ scalar, message }: DescField): boolean {
  return scalar === ScalarType.BYTES || message?.typeName === "google.protobuf.BytesValue";
}

function toUrlText(value: JsonValue): string {
  // Among the fields with a text form, only google.protobuf.NullValue is null in JSON.
  if (value === null) return "NULL_VALUE";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Escapes all characters except the unreserved ones (RFC 3986 §2.3), as google/api/http.proto requires.
 *
 * @throws RefusalError for a lone surrogate, which UTF-8 cannot encode
 */
export function escapeUrlValue(name: string, text: string): string {
  try {
    return encodeURIComponent(text).replaceAll(
      /[!'()*]/g,
      (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  } catch {
    throw new RefusalError(`${name}: has a lone surrogate, which UTF-8 cannot encode`);
  }
}
