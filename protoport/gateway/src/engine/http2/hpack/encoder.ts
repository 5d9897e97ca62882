import { connectionSpecificFields, requireField, withCode } from "../../../http/index.ts";
import { staticIndexOfName, staticTable } from "./static-table.ts";

/**
 * Encodes a field block with static entries and literals without indexing (RFC 7541 §6.1, §6.2.2). The peer's table
 * does not change, so a block is the same on every connection and can be prepared once.
 *
 * @param fields - name, value, name, value, …; values have one character per byte
 * @throws TypeError for a field that HTTP/2 does not allow (RFC 9113 §8.2)
 */
export function encodeBlock(fields: readonly string[]): Buffer {
  let block = "";
  for (let i = 0; i < fields.length; i += 2) block += encodeChecked(fields[i] ?? "", fields[i + 1] ?? "");
  return toBytes(block);
}

/** Encodes a field. With `hidesCredentials`, credentials are never indexed. Throws like {@link encodeBlock}. */
export function encodeChecked(field: string, value: string, hidesCredentials: boolean = false): string {
  requireField(field, value);
  // §8.2.1: names are sent in lower case.
  const name = field.toLowerCase();
  if (connectionSpecificFields.has(name))
    throw withCode(new TypeError(`"${name}" is not allowed in an HTTP/2 field section`), "ERR_HEADER_FIELD");
  return hidesCredentials && credentialFields.has(name)
    ? encodeLiteral(name, value, Literal.never)
    : encodeField(name, value);
}

const credentialFields: ReadonlySet<string> = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Converts an encoded string to bytes. Concatenating many short strings is much faster than concatenating buffers. */
export function toBytes(encoded: string): Buffer {
  return Buffer.from(encoded, "latin1");
}

/** Encodes the `:status` field, the only pseudo-header field of responses (RFC 9113 §8.3.2). */
export function encodeStatus(httpStatus: number): Buffer {
  return toBytes(encodeField(":status", String(httpStatus)));
}

/** A table size update to 0 (RFC 7541 §6.3), which every peer allows, for the start of a connection's first block. */
export const emptyTable: Buffer = Buffer.from([0x20]);

/** Encodes a field as a static table index if possible, otherwise as a literal without indexing. */
export function encodeField(name: string, value: string): string {
  const exact = staticIndex(name, value);
  return exact === 0 ? encodeLiteral(name, value, Literal.plain) : encodeIndex(exact);
}

/**
 * The literal representations (RFC 7541 §6.2). `pattern` has the leading bits of the first byte, and `prefixBits` is
 * the number of bits for the name's index.
 */
export const Literal = {
  /** The decoder inserts the field into the dynamic table. */
  indexed: { prefixBits: 6, pattern: 0x40 },
  plain: { prefixBits: 4, pattern: 0x00 },
  /** Intermediaries must not index the field either, because the value is a credential (§7.1.3). */
  never: { prefixBits: 4, pattern: 0x10 },
} as const;

/** Encodes a field as a literal. The result has one character per byte, for {@link toBytes}. */
export function encodeLiteral(
  name: string,
  value: string,
  { prefixBits, pattern }: (typeof Literal)[keyof typeof Literal],
): string {
  const index = staticIndexOfName.get(name) ?? 0;
  const encodedName = index === 0 ? encodeString(name) : "";
  return encodeInteger(index, prefixBits, pattern) + encodedName + encodeString(value);
}

/** Encodes a field as an index into the static and dynamic tables (§6.1). */
export function encodeIndex(index: number): string {
  return encodeInteger(index, 7, 0x80);
}

/** Encodes a dynamic table size update (§6.3). */
export function encodeTableSize(bytes: number): string {
  return encodeInteger(bytes, 5, 0x20);
}

/** Returns a field's index in the static table, or 0 if the table has no entry with this value. */
export function staticIndex(name: string, value: string): number {
  const index = staticIndexOfName.get(name) ?? 0;
  for (let at = index; at > 0 && staticTable[at - 1]?.[0] === name; at++) {
    if (staticTable[at - 1]?.[1] === value) return at;
  }
  return 0;
}

/** Encodes an integer (§5.1) after the leading bits in `pattern`. */
function encodeInteger(value: number, prefixBits: number, pattern: number): string {
  const mask = (1 << prefixBits) - 1;
  if (value < mask) return String.fromCharCode(pattern | value);
  let encoded = String.fromCharCode(pattern | mask);
  let remainder = value - mask;
  for (; remainder >= 0x80; remainder = Math.floor(remainder / 0x80))
    encoded += String.fromCharCode((remainder & 0x7f) | 0x80);
  return encoded + String.fromCharCode(remainder);
}

// Uses no Huffman coding (§5.2), because decoding would cost peers more than the coding saves.
function encodeString(text: string): string {
  return encodeInteger(text.length, 7, 0x00) + text;
}
