import { closeSync, openSync, readSync } from "node:fs";

/** The state of a write-ahead log, as all connections see it (sqlite.org/walformat.html#the_wal_index_file_format). */
export interface WalIndex {
  /** How many commits there were since the first of all connections has read the log, modulo 2^32. */
  readonly commits: number;
  /** How many pages the file has, with those that only the log contains. */
  readonly pages: number;
  /** How many frames of the log count. */
  readonly frames: number;
  /** Bytes of a page. */
  readonly pageBytes: number;
  /** The salts of the log, which change when it is used from its beginning again. */
  readonly salts: bigint;
  /** How many frames checkpoints have copied into the file. */
  readonly copied: number;
  /** How many frames there will be after the checkpoint that is running, or was broken off. */
  readonly copiedSoon: number;
}

// Two copies of a header of 48 bytes, and the state of checkpoints up to nBackfillAttempted.
const headerBytes = 48;
const indexBytes = 2 * headerBytes + 36;

// A writer needs less than a microsecond. One that was killed meanwhile leaves the copies different until the next
// connection that reads has made them the same.
const triesMax = 1_000;

/** Reads the -shm file, in which all connections share the index of a write-ahead log. */
export class WalIndexFile {
  readonly #descriptor: number;
  readonly #bytes = Buffer.alloc(indexBytes);
  readonly #view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset);

  /** Opens the file of a connection that has read from its log. */
  constructor(path: string) {
    this.#descriptor = openSync(path, "r");
  }

  /** Returns the state as it is now; `undefined` while its two copies differ. */
  read(): WalIndex | undefined {
    for (let tries = 0; tries < triesMax; tries++) {
      readSync(this.#descriptor, this.#bytes, 0, indexBytes, 0);
      // A writer changes one copy after the other.
      if (this.#bytes.compare(this.#bytes, headerBytes, 2 * headerBytes, 0, headerBytes) === 0) return this.#parse();
    }
    return undefined;
  }

  /**
   * Closes the file, after the connection. A process loses its locks of a file when it closes any descriptor of it
   * (fcntl of POSIX).
   */
  close(): void {
    closeSync(this.#descriptor);
  }

  #parse(): WalIndex {
    const pageBytes = this.#native16(14);
    return {
      commits: this.#native32(8),
      frames: this.#native32(16),
      pages: this.#native32(20),
      // 65,536 does not fit into its two bytes; 1 stands for it.
      pageBytes: pageBytes === 1 ? 65_536 : pageBytes,
      // In the byte order of the log.
      salts: this.#view.getBigUint64(32),
      copied: this.#native32(96),
      copiedSoon: this.#native32(128),
    };
  }

  #native16(at: number): number {
    return this.#view.getUint16(at, isLittleEndian);
  }

  #native32(at: number): number {
    return this.#view.getUint32(at, isLittleEndian);
  }
}

const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
