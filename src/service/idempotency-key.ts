import { hash } from "node:crypto";
import { idempotencyKeyMalformed } from "./errors.ts";

/** The header field for the idempotency key. Over gRPC, the field is metadata. */
export const idempotencyKeyField = "Idempotency-Key";

// Maximum characters in a key, as many as in a SHA-512 hash in hex. Each record and its index entry store the key.
const maxChars = 128;

/** The value is an sf-string (RFC 9651 §3.3.3): printable ASCII in double quotes, with escapes. */
export const idempotencyKeyPattern: string = String.raw`^"((?:[ !#-\[\]-~]|\\["\\]){1,${maxChars}})"$`;

const quotedKey = new RegExp(idempotencyKeyPattern);

/**
 * Reads an `Idempotency-Key` field value (draft-ietf-httpapi-idempotency-key-header). The value must be one
 * structured-field string with 1 to 128 characters.
 *
 * @returns the key without quotes and escapes
 * @throws ConnectError `InvalidArgument` for any other value, for example two keys, or a key with parameters
 */
export function readIdempotencyKey(field: string): string {
  const [, escaped] = quotedKey.exec(field.trim()) ?? [];
  if (escaped === undefined) throw idempotencyKeyMalformed(maxChars);
  return escaped.replaceAll(/\\(.)/g, "$1");
}

/**
 * Returns the key that stores record: `<issuer>:<key>`, with at most 172 characters. `<issuer>` is the issuer's SHA-256
 * hash in base64url, or empty without an issuer. The key includes the issuer, because subjects are unique only within
 * an issuer.
 */
export function scopeIdempotencyKey(key: string, issuer: string | undefined): string {
  return `${issuer === undefined ? "" : hash("sha256", issuer, "base64url")}:${key}`;
}
