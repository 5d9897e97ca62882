import { ErrorCode, type CachedFields } from "../../../http/index.ts";
import { headerTableBytesInitial } from "../frame-numbers.ts";
import { ConnectionError } from "../http2-error.ts";
import { DynamicTable } from "./dynamic-table.ts";
import { decodeHuffman } from "./huffman.ts";
import { DecodedCache } from "./decoded-cache.ts";

/** A decoded field block. */
export interface DecodedBlock<Head> {
  /**
   * The fields: name, value, name, value, … Fields above the limit are dropped, except pseudo-header fields, so that
   * the request can get a response.
   */
  readonly fields: CachedFields;
  /** The field list's size (RFC 9113 §6.5.2): name, value and 32 bytes per field. */
  readonly listBytes: number;
  /** The parsed fields, cached by the first code that parses them. */
  head?: Head | undefined;
}

// Maximum size in bytes of the field block cache per connection: encoded bytes and field lists (RFC 9113 §6.5.2). 32
// KiB hold thirty short blocks, or a dozen blocks with a one-kilobyte token. Clients such as curl, Envoy and node:http2
// never index credentials (RFC 7541 §7.1.3), and repeat the token in each block.
const maxBlocksBytes = 32 * 1024;

// Maximum size in bytes of the long string cache per connection, for a few tokens. Long strings are found even if other
// fields change with each call, such as a deadline.
const maxStringsBytes = 8 * 1024;

/** Minimum number of bytes in a cached string. Decoding a shorter string is faster than a lookup. */
const minStringBytes = 128;

/**
 * Decodes a connection's field blocks (RFC 7541 §3).
 *
 * A repeated block has the same fields as long as the dynamic table has not changed. So decoded blocks are cached by
 * their bytes. A client that repeats an RPC sends the same block for each call after the first.
 */
export class HpackDecoder<Head = unknown> {
  readonly #table = new DynamicTable(headerTableBytesInitial);
  readonly #maxListBytes: number;
  readonly #blocks = new DecodedCache<DecodedBlock<Head>>(maxBlocksBytes);
  readonly #strings = new DecodedCache<string>(maxStringsBytes);
  // The chunk that contains the current block.
  #bytes: Buffer = noBytes;
  #at = 0;
  #end = 0;
  #changed = false;

  /** @param maxListBytes - size of the field list above which further fields are counted, but not returned */
  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes;
  }

  /** Decodes a block. @throws ConnectionError COMPRESSION_ERROR, because the dynamic tables may be out of sync */
  decode(bytes: Buffer, from: number, to: number): DecodedBlock<Head> {
    const cached = this.#blocks.get(bytes, from, to);
    if (cached !== undefined) return cached;
    const block = this.#decode(bytes, from, to);
    // After the table has changed, cached blocks may decode to other fields.
    if (this.#changed) this.#blocks.clear();
    else this.#blocks.set(bytes, from, to, block, block.listBytes);
    return block;
  }

  #decode(bytes: Buffer, from: number, to: number): DecodedBlock<Head> {
    this.#bytes = bytes;
    this.#at = from;
    this.#end = to;
    this.#changed = false;
    this.#readSizeUpdates();
    const fields: string[] = [];
    let listBytes = 0;
    while (this.#at < this.#end) {
      const first = bytes.readUInt8(this.#at);
      let name: string;
      let value: string;
      if (first >= 0x80) {
        // Reads an Indexed Header Field Representation (§6.1).
        const index = this.#readInteger(7);
        name = this.#nameAt(index);
        value = this.#table.valueAt(index) ?? "";
      } else if (first >= 0x40) {
        // Reads a Literal Header Field with Incremental Indexing (§6.2.1).
        name = this.#readName(6);
        value = this.#readString();
        this.#table.add(name, value);
        this.#changed = true;
      } else if (first >= 0x20) {
        throw compressionError("a dynamic table size update must be at the start of a field block");
      } else {
        // Reads a Literal Header Field without Indexing (§6.2.2) or Never Indexed (§6.2.3).
        name = this.#readName(4);
        value = this.#readString();
      }
      listBytes += name.length + value.length + 32;
      if (listBytes <= this.#maxListBytes || name.charCodeAt(0) === colon) fields.push(name, value);
    }
    this.#bytes = noBytes;
    return { fields, listBytes };
  }

  /** Reads table size updates (§6.3), which are allowed only at the start of a block (§4.2). */
  #readSizeUpdates(): void {
    while (this.#at < this.#end && (this.#bytes.readUInt8(this.#at) & 0xe0) === 0x20) {
      this.#table.resize(this.#readTableBytes());
      this.#changed = true;
    }
  }

  #readTableBytes(): number {
    const limitBytes = this.#readInteger(5);
    if (limitBytes > headerTableBytesInitial)
      throw compressionError("the dynamic table size is larger than SETTINGS_HEADER_TABLE_SIZE");
    return limitBytes;
  }

  #nameAt(index: number): string {
    const name = this.#table.nameAt(index);
    if (name === undefined) throw compressionError(`index ${index} is in neither the static nor the dynamic table`);
    return name;
  }

  #readName(prefixBits: number): string {
    const index = this.#readInteger(prefixBits);
    return index === 0 ? this.#readString() : this.#nameAt(index);
  }

  /** Reads an integer (§5.1). */
  #readInteger(prefixBits: number): number {
    const mask = (1 << prefixBits) - 1;
    let value = this.#nextByte() & mask;
    if (value < mask) return value;
    // Reads at most four octets, which hold 28 bits, because all valid values in a field block are smaller.
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#nextByte();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw compressionError("an integer is too large");
  }

  /** Reads a string literal (§5.2). */
  #readString(): string {
    const huffman = ((this.#bytes[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#readInteger(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#end) throw compressionError("a string literal is longer than the field block");
    this.#at = end;
    return huffman ? this.#decodeString(start, end) : this.#bytes.toString("latin1", start, end);
  }

  #decodeString(from: number, to: number): string {
    const isLong = to - from >= minStringBytes;
    const cached = isLong ? this.#strings.get(this.#bytes, from, to) : undefined;
    if (cached !== undefined) return cached;
    const text = decodeHuffman(this.#bytes, from, to);
    if (text === undefined) throw compressionError("a string literal is not valid Huffman code");
    if (isLong) this.#strings.set(this.#bytes, from, to, text, text.length);
    return text;
  }

  #nextByte(): number {
    if (this.#at >= this.#end) throw compressionError("the field block is truncated");
    return this.#bytes.readUInt8(this.#at++);
  }
}

const noBytes = Buffer.alloc(0);
const colon = 0x3a;

function compressionError(message: string): ConnectionError {
  return new ConnectionError(ErrorCode.compressionError, message);
}
