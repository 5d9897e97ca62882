import { closeSync, openSync, readSync } from "node:fs";

/** The state of a write-ahead log, as all connections see it (sqlite.org/walformat.html#the_wal_index_file_format). */
export interface WalIndex {
  /** The number of commits since the first connection read the log, modulo 2^32. */
  readonly commits: number;
  /** The number of pages of the file, including those that are only in the log. */
  readonly pages: number;
  /** The number of valid frames in the log. */
  readonly frames: number;
  /** The size of a page, in bytes. */
  readonly pageBytes: number;
  /** The salts of the log, which change when it is restarted. */
  readonly salts: bigint;
  /** The number of frames that checkpoints have copied into the file. */
  readonly backfilled: number;
  /** The number of copied frames after the checkpoint that is running or was interrupted. */
  readonly backfillAttempted: number;
}

// Two copies of a header of 48 bytes, and the state of checkpoints up to nBackfillAttempted.
const headerBytes = 48;
const indexBytes = 2 * headerBytes + 36;

// A writer needs less than a microsecond to change both copies. If it was killed in between, they differ until the next
// connection reads and repairs them.
const attemptsMax = 1_000;

/** Reads the -shm file, in which all connections share the index of a write-ahead log. */
export class WalIndexFile {
  readonly #descriptor: number;
  readonly #bytes = Buffer.alloc(indexBytes);
  readonly #view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset);

  /** Opens the file; a connection must have read from the log. */
  constructor(path: string) {
    this.#descriptor = openSync(path, "r");
  }

  /** Returns the current state; `undefined` if the two copies of the header still differ after all attempts. */
  read(): WalIndex | undefined {
    for (let attempts = 0; attempts < attemptsMax; attempts++) {
      readSync(this.#descriptor, this.#bytes, 0, indexBytes, 0);
      // A writer changes one copy after the other.
      if (this.#bytes.compare(this.#bytes, headerBytes, 2 * headerBytes, 0, headerBytes) === 0) return this.#parse();
    }
    return undefined;
  }

  /**
   * Closes the file. Close the connection first: a process loses its locks on a file when it closes any descriptor of
   * the file (fcntl of POSIX).
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
      // 65,536 does not fit into two bytes, and is stored as 1.
      pageBytes: pageBytes === 1 ? 65_536 : pageBytes,
      // Salts are in the byte order of the log, big-endian.
      salts: this.#view.getBigUint64(32),
      backfilled: this.#native32(96),
      backfillAttempted: this.#native32(128),
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
