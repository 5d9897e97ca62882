import { readSync } from "node:fs";

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

/**
 * Prepares a function that reads the log's current state from a -shm file. All connections share the write-ahead log's
 * index in this file. The function returns `undefined` if the header's two copies differ at every attempt.
 *
 * @param descriptor - an open -shm file. A connection must have read from its log. Close the connection before the
 * descriptor, because closing any descriptor of the file releases the connection's locks (POSIX fcntl)
 */
export function prepareIndexReader(descriptor: number): () => WalIndex | undefined {
  // Words are in native byte order, except for the salts. The salts are only compared.
  const words = new Uint32Array(indexWords);
  const halfWords = new Uint16Array(words.buffer);
  const doubleWords = new BigUint64Array(words.buffer);
  const areCopiesEqual = (): boolean => {
    for (let i = 0; i < headerWords; i++) if (words[i] !== words[headerWords + i]) return false;
    return true;
  };
  return () => {
    for (let attempts = 0; attempts < attemptsMax; attempts++) {
      readSync(descriptor, words, 0, words.byteLength, 0);
      if (!areCopiesEqual()) continue;
      const pageBytes = halfWords[7] ?? 0;
      return {
        commits: words[2] ?? 0,
        frames: words[4] ?? 0,
        // A page size of 65,536 bytes does not fit into two bytes, and is stored as 1.
        pageBytes: pageBytes === 1 ? 65_536 : pageBytes,
        salts: doubleWords[4] ?? 0n,
        backfilled: words[2 * headerWords] ?? 0,
      };
    }
    return undefined;
  };
}
