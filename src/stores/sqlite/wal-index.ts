import { closeSync, openSync, readSync } from "node:fs";

/** The write-ahead log's state in the shared index (sqlite.org/walformat.html#the_wal_index_file_format). */
export interface WalIndex {
  /** Number of commits since the first connection built the index from the log, modulo 2^32. */
  readonly commits: number;
  readonly frames: number;
  readonly pageBytes: number;
  /** The log's salts, as eight bytes in native order. The salts change when the log is restarted. */
  readonly salts: bigint;
  /** Number of frames that checkpoints have copied into the file. */
  readonly backfilled: number;
}

// The index starts with two copies of a 48-byte header, nBackfill, and an unused word. Sizes are in 4-byte words.
const headerWords = 12;
const indexWords = 2 * headerWords + 2;

// A writer changes both header copies in less than a microsecond. If the writer was killed between the changes, the
// copies differ until the next connection reads and repairs the header.
const attemptsMax = 1_000;

/** Reads a -shm file. All connections share the write-ahead log's index in this file. */
export class WalIndexFile implements Disposable {
  readonly #descriptor: number;
  // Words are in native byte order, except for the salts. The salts are only compared.
  readonly #words = new Uint32Array(indexWords);
  readonly #halfWords = new Uint16Array(this.#words.buffer);
  readonly #doubleWords = new BigUint64Array(this.#words.buffer);

  /** Opens a -shm file. A connection must already have read from the log. */
  constructor(path: string) {
    this.#descriptor = openSync(path, "r");
  }

  /** Returns the log's current state. Returns `undefined` if the header's two copies differ at every attempt. */
  read(): WalIndex | undefined {
    for (let attempts = 0; attempts < attemptsMax; attempts++) {
      readSync(this.#descriptor, this.#words, 0, this.#words.byteLength, 0);
      if (this.#areCopiesEqual()) return this.#parse();
    }
    return undefined;
  }

  /** Close the connection first, because closing any descriptor of the file releases its locks (POSIX fcntl). */
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
      // A page size of 65,536 bytes does not fit into two bytes, and is stored as 1.
      pageBytes: pageBytes === 1 ? 65_536 : pageBytes,
      salts: this.#doubleWords[4] ?? 0n,
      backfilled: this.#words[2 * headerWords] ?? 0,
    };
  }
}
