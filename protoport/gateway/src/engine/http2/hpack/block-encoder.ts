import { requireField } from "../../../http/index.ts";
import { headerTableBytesInitial } from "../frame-numbers.ts";
import { entryOverheadBytes } from "./dynamic-table.ts";
import {
  encodeChecked,
  encodeField,
  encodeIndex,
  encodeLiteral,
  encodeTableSize,
  Literal,
  staticIndex,
  toBytes,
} from "./encoder.ts";
import { staticTable } from "./static-table.ts";

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
