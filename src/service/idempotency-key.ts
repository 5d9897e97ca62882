import { hash } from "node:crypto";
import { idempotencyKeyMalformed } from "./errors.ts";

/** The key's header field, over gRPC the metadata key. */
export const idempotencyKeyField = "Idempotency-Key";

/**
 * A key's maximum length, in characters: as long as a SHA-512 hash in hex. Limited because each record and its index
 * entry store the key.
 */
const charsMax = 128;

/**
 * The pattern for the field's value, an sf-string (RFC 9651 §3.3.3): printable ASCII in double quotes, in which each
 * quote and backslash is escaped by a backslash.
 */
export const idempotencyKeyPattern: string = String.raw`^"((?:[ !#-\[\]-~]|\\["\\]){1,${charsMax}})"$`;

const quotedKey = new RegExp(idempotencyKeyPattern);

/**
 * Reads an `Idempotency-Key` field value (draft-ietf-httpapi-idempotency-key-header): one structured-field string with
 * 1 to 128 characters.
 *
 * @returns the key's characters
 * @throws ConnectError `InvalidArgument` for any other value, including two keys and parameters
 */
export function readIdempotencyKey(field: string): string {
  const [, escaped] = quotedKey.exec(field.trim()) ?? [];
  if (escaped === undefined) throw idempotencyKeyMalformed(charsMax);
  return escaped.replaceAll(/\\(.)/g, "$1");
}

/**
 * Returns the key as stores record it: `<issuer>:<key>`, at most 172 characters. `<issuer>` is the caller's issuer as
 * SHA-256 in base64url, or empty without an issuer. The issuer is included because subjects are unique only within an
 * issuer.
 */
export function scopeIdempotencyKey(key: string, issuer: string | undefined): string {
  return `${issuer === undefined ? "" : hash("sha256", issuer, "base64url")}:${key}`;
}
