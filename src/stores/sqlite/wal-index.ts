import { closeSync, openSync, readSync } from "node:fs";

/** A write-ahead log's state, as all connections see it (sqlite.org/walformat.html#the_wal_index_file_format). */
export interface WalIndex {
  /** How many commits followed since the first connection built the index from the log, modulo 2^32. */
  readonly commits: number;
  /** How many valid frames the log has. */
  readonly frames: number;
  /** A page's size, in bytes. */
  readonly pageBytes: number;
  /** The log's salts, as eight bytes in native order. They change when the log is restarted. */
  readonly salts: bigint;
  /** How many frames checkpoints have copied into the file. */
  readonly backfilled: number;
}

// Two copies of a 48-byte header, nBackfill and a word that is not used here, as 4-byte words.
const headerWords = 12;
const indexWords = 2 * headerWords + 2;

// A writer needs less than a microsecond to change both copies. If it was killed in between, they differ until the next
// connection reads and repairs them.
const attemptsMax = 1_000;

/** Reads the -shm file, in which all connections share the index of a write-ahead log. */
export class WalIndexFile implements Disposable {
  readonly #descriptor: number;
  // In native byte order, except for the salts, which are only compared.
  readonly #words = new Uint32Array(indexWords);
  readonly #halfWords = new Uint16Array(this.#words.buffer);
  readonly #doubleWords = new BigUint64Array(this.#words.buffer);

  /** Opens the file. A connection must have read from the log. */
  constructor(path: string) {
    this.#descriptor = openSync(path, "r");
  }

  /** Returns the current state, or `undefined` if the header's two copies still differ after all attempts. */
  read(): WalIndex | undefined {
    for (let attempts = 0; attempts < attemptsMax; attempts++) {
      readSync(this.#descriptor, this.#words, 0, this.#words.byteLength, 0);
      // A writer changes one copy after the other.
      if (this.#areCopiesEqual()) return this.#parse();
    }
    return undefined;
  }

  /**
   * Closes the file. Close the connection first, because a process loses its locks on a file when it closes any
   * descriptor for the file (POSIX fcntl).
   */
  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }

  #areCopiesEqual(): boolean {
    for (let i = 0; i < headerWords; i++) if (this.#words[i] !== this.#words[headerWords + i]) return false;
    return true;
  }

  #parse(): WalIndex {
    const pageBytes = this.#halfWords[7] ?? 0;
    return {
      commits: this.#words[2] ?? 0,
      frames: this.#words[4] ?? 0,
      // 65,536 does not fit into two bytes, and is stored as 1.
      pageBytes: pageBytes === 1 ? 65_536 : pageBytes,
      salts: this.#doubleWords[4] ?? 0n,
      backfilled: this.#words[2 * headerWords] ?? 0,
    };
  }
}
