import { requireField } from "@plantstore/http";
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

/** Fields that many requests share, in order: name, value, … Each object is encoded once per connection. */
export class StableFields {
  readonly fields: readonly string[];
  /** The fields as literals, which do not change the dynamic table. */
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
 * Encodes the first part of each request header section with the peer's dynamic table (RFC 7541 §2.3.2).
 *
 * A field is inserted once, and only if it fits. Nothing is ever evicted, so an index is stable until another field is
 * inserted. A repeated head is then a few bytes, which are cached. Before the peer's SETTINGS, everything is literal,
 * because its table may be smaller than HTTP/2's initial value.
 */
export class BlockEncoder {
  /** For each field in the table, how many were inserted before it. */
  readonly #entries = new Map<string, number>();
  /** Cached blocks that do not change the table. Invalid after another insertion. */
  #blocks = new WeakMap<StableFields, Buffer>();
  #sizeBytes = 0;
  #limitBytes = headerTableBytesInitial;
  #settled = false;
  /** Size updates that the next block starts with (§4.2). */
  #updates = "";

  /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE: after its first SETTINGS, and after each change. */
  applyTableSize(tableBytes: number): void {
    this.#settled = true;
    const limitBytes = Math.min(tableBytes, headerTableBytesInitial);
    if (limitBytes === this.#limitBytes) return;
    this.#limitBytes = limitBytes;
    // §4.2: the smallest size in between must be signalled as well, which 0 always covers.
    this.#updates = encodeTableSize(0) + encodeTableSize(limitBytes);
    this.#entries.clear();
    this.#blocks = new WeakMap();
    this.#sizeBytes = 0;
  }

  /** Encodes the next block's first part, which must be sent before `encode` is called again. */
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
 * Encodes one request's fields, in lower case, without indexing. Credentials are encoded as never indexed.
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
      // The pseudo-header field names are not tokens.
      requireField(name.slice(1), value);
      block += encodeField(name, value);
    } else block += encodeChecked(name, value);
  }
  return toBytes(block);
}
