import { staticTable } from "./static-table.ts";

/** Number of bytes that an entry counts in addition to name and value (RFC 7541 §4.1). */
export const entryOverheadBytes = 32;

/** The dynamic table for one direction of a connection (RFC 7541 §2.3.2, §4). */
export class DynamicTable {
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  #sizeBytes = 0;
  #limitBytes: number;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Returns the name at an index, or `undefined`. Indexes start with the static table (RFC 7541 §2.3.3). */
  nameAt(index: number): string | undefined {
    if (index <= staticTable.length) return staticTable[index - 1]?.[0];
    return this.#names[this.#names.length - (index - staticTable.length)];
  }

  valueAt(index: number): string | undefined {
    if (index <= staticTable.length) return staticTable[index - 1]?.[1];
    return this.#values[this.#values.length - (index - staticTable.length)];
  }

  /** Adds an entry and evicts the oldest entries that do not fit. A larger entry empties the table (§4.4). */
  add(name: string, value: string): void {
    this.#sizeBytes += name.length + value.length + entryOverheadBytes;
    this.#names.push(name);
    this.#values.push(value);
    this.#evict();
  }

  resize(limitBytes: number): void {
    this.#limitBytes = limitBytes;
    this.#evict();
  }

  #evict(): void {
    let evicted = 0;
    while (this.#sizeBytes > this.#limitBytes) {
      const name = this.#names[evicted] ?? "";
      const value = this.#values[evicted] ?? "";
      this.#sizeBytes -= name.length + value.length + entryOverheadBytes;
      evicted++;
    }
    if (evicted === 0) return;
    this.#names.splice(0, evicted);
    this.#values.splice(0, evicted);
  }
}
