import { connectionSpecificFields, requireField, withCode } from "../../../http/index.ts";
import { headerTableBytesInitial } from "../frame-numbers.ts";
import { entryOverheadBytes } from "./dynamic-table.ts";
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
function encodeChecked(field: string, value: string, hidesCredentials: boolean = false): string {
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
function toBytes(encoded: string): Buffer {
  return Buffer.from(encoded, "latin1");
}

/** Encodes the `:status` field, the only pseudo-header field of responses (RFC 9113 §8.3.2). */
export function encodeStatus(httpStatus: number): Buffer {
  return toBytes(encodeField(":status", String(httpStatus)));
}

/** A table size update to 0 (RFC 7541 §6.3), which every peer allows, for the start of a connection's first block. */
export const emptyTable: Buffer = Buffer.from([0x20]);

/** Encodes a field as a static table index if possible, otherwise as a literal without indexing. */
function encodeField(name: string, value: string): string {
  const exact = staticIndex(name, value);
  return exact === 0 ? encodeLiteral(name, value, Literal.plain) : encodeIndex(exact);
}

/**
 * The literal representations (RFC 7541 §6.2). `pattern` has the leading bits of the first byte, and `prefixBits` is
 * the number of bits for the name's index.
 */
const Literal = {
  /** The decoder inserts the field into the dynamic table. */
  indexed: { prefixBits: 6, pattern: 0x40 },
  plain: { prefixBits: 4, pattern: 0x00 },
  /** Intermediaries must not index the field either, because the value is a credential (§7.1.3). */
  never: { prefixBits: 4, pattern: 0x10 },
} as const;

/** Encodes a field as a literal. The result has one character per byte, for {@link toBytes}. */
function encodeLiteral(
  name: string,
  value: string,
  { prefixBits, pattern }: (typeof Literal)[keyof typeof Literal],
): string {
  const index = staticIndexOfName.get(name) ?? 0;
  const encodedName = index === 0 ? encodeString(name) : "";
  return encodeInteger(index, prefixBits, pattern) + encodedName + encodeString(value);
}

/** Encodes a field as an index into the static and dynamic tables (§6.1). */
function encodeIndex(index: number): string {
  return encodeInteger(index, 7, 0x80);
}

/** Encodes a dynamic table size update (§6.3). */
function encodeTableSize(bytes: number): string {
  return encodeInteger(bytes, 5, 0x20);
}

/** Returns a field's index in the static table, or 0 if the table has no entry with this value. */
function staticIndex(name: string, value: string): number {
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

/** Header fields that many requests share: name, value, name, value, … The encoder caches the block for each object. */
export class StableFields {
  readonly fields: readonly string[];
  /** The fields encoded as literals, which do not change the dynamic table. */
  readonly literal: Buffer;
  /** The field list's size (RFC 9113 §6.5.2). */
  readonly listBytes: number;

  /** @throws TypeError for a field that HTTP/2 does not allow (RFC 9113 §8.2) */
  constructor(fields: readonly string[]) {
    this.fields = fields;
    this.literal = encodeStable(fields);
    this.listBytes = listBytesOf(fields);
  }
}

/** Returns a field list's size (RFC 9113 §6.5.2): name, value and 32 bytes per field. */
export function listBytesOf(fields: readonly string[]): number {
  let bytes = fields.length * (entryOverheadBytes / 2);
  for (const part of fields) bytes += part.length;
  return bytes;
}

/**
 * Encodes the fields that many requests share, with the peer's dynamic table (RFC 7541 §2.3.2).
 *
 * A field is inserted into the table once, and only if the field fits. Entries are never evicted, so an index is stable
 * until another field is inserted. Repeated fields need only a few bytes, which are cached. Before the peer's SETTINGS
 * arrive, all fields are literals, because the peer's table may be smaller than HTTP/2's initial value.
 */
export class BlockEncoder {
  /** Maps each field in the table to the number of earlier insertions. */
  readonly #entries = new Map<string, number>();
  /** Cached blocks that do not change the table. The cache is replaced after each insertion. */
  #blocks = new WeakMap<StableFields, Buffer>();
  #sizeBytes = 0;
  #limitBytes = headerTableBytesInitial;
  #settled = false;
  /** Encoded table size updates at the start of the next block (§4.2). */
  #updates = "";

  /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE. Called after the peer's first SETTINGS, and after each change. */
  applyTableSize(tableBytes: number): void {
    this.#settled = true;
    const limitBytes = Math.min(tableBytes, headerTableBytesInitial);
    if (limitBytes === this.#limitBytes) return;
    this.#limitBytes = limitBytes;
    // §4.2 also requires a size update for the smallest size since the last block. An update to 0 is always allowed.
    this.#updates = encodeTableSize(0) + encodeTableSize(limitBytes);
    this.#entries.clear();
    this.#blocks = new WeakMap();
    this.#sizeBytes = 0;
  }

  /** Encodes the shared fields at the start of the next block, which must be sent before the next call. */
  encode(stable: StableFields): Uint8Array {
    if (!this.#settled) return stable.literal;
    const cached = this.#blocks.get(stable);
    if (cached !== undefined) return cached;
    const sizeBefore = this.#entries.size;
    let encoded = this.#updates;
    const isPlain = encoded === "";
    this.#updates = "";
    const { fields } = stable;
    for (let i = 0; i < fields.length; i += 2) encoded += this.#encodeField(fields[i] ?? "", fields[i + 1] ?? "");
    const block = toBytes(encoded);
    if (this.#entries.size > sizeBefore) this.#blocks = new WeakMap();
    else if (isPlain) this.#blocks.set(stable, block);
    return block;
  }

  #encodeField(name: string, value: string): string {
    const exact = staticIndex(name, value);
    if (exact !== 0) return encodeIndex(exact);
    const key = `${name}\0${value}`;
    const ordinal = this.#entries.get(key);
    // §2.3.3: the latest entry has the lowest index.
    if (ordinal !== undefined) return encodeIndex(staticTable.length + this.#entries.size - ordinal);
    const sizeBytes = name.length + value.length + entryOverheadBytes;
    if (this.#sizeBytes + sizeBytes > this.#limitBytes) return encodeLiteral(name, value, Literal.plain);
    this.#sizeBytes += sizeBytes;
    this.#entries.set(key, this.#entries.size);
    return encodeLiteral(name, value, Literal.indexed);
  }
}

/**
 * Encodes the fields that only one request has, in lower case and without indexing, and credentials as never indexed.
 *
 * @throws TypeError for a field that HTTP/2 does not allow (RFC 9113 §8.2)
 */
export function encodeVarying(fields: readonly string[]): Uint8Array {
  let block = "";
  for (let i = 0; i < fields.length; i += 2) block += encodeChecked(fields[i] ?? "", fields[i + 1] ?? "", true);
  return toBytes(block);
}

function encodeStable(fields: readonly string[]): Buffer {
  let block = "";
  for (let i = 0; i < fields.length; i += 2) {
    const [name = "", value = ""] = fields.slice(i, i + 2);
    if (name.startsWith(":")) {
      // Names of pseudo-header fields are checked without the colon, which is not allowed in tokens.
      requireField(name.slice(1), value);
      block += encodeField(name, value);
    } else block += encodeChecked(name, value);
  }
  return toBytes(block);
}
