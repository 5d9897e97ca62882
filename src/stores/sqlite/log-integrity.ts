import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { prepareIndexReader, type WalIndex } from "./wal-index.ts";

// Header sizes of the log and of each frame (sqlite.org/fileformat.html#the_write_ahead_log).
const logHeaderBytes = 32;
const frameHeaderBytes = 24;
const saltsAt = 16;

// As large as a page of the file.
const page = new Uint8Array(4_096);

/**
 * Detects that another program has truncated or overwritten a write-ahead log. A truncated log is shorter than its
 * index says. An overwritten log starts with other salts. Other processes may write to the log with SQLite at the same
 * time. Timestamps are not compared, because `touch` and folder backups change timestamps without changing the content.
 */
export class LogIntegrity {
  /** Returns the log's index. Read the index before the log's size, then call {@link check}. */
  readonly readIndex: () => WalIndex | undefined;
  readonly #index: number;
  readonly #log: number;
  readonly #saltsOfLog = new BigUint64Array(1);
  #isDamaged = false;

  /** @param path - the real path of the database file. A connection must have read from the file's log */
  constructor(path: string) {
    this.#index = openSync(`${path}-shm`, "r");
    this.#log = openSync(`${path}-wal`, "r+");
    this.readIndex = prepareIndexReader(this.#index);
  }

  /** Whether a check has found that the log was truncated or overwritten. */
  get isDamaged(): boolean {
    return this.#isDamaged;
  }

  /** Returns whether this or an earlier check found damage. Read `index` before reading the log's size. */
  check(index: WalIndex | undefined, logBytes: number): boolean {
    if (index === undefined || this.#isComplete(index, logBytes)) return this.#isDamaged;
    // The salts have changed if SQLite has restarted the log since the index was read.
    if (this.readIndex()?.salts === index.salts) this.#isDamaged = true;
    return this.#isDamaged;
  }

  /**
   * Writes a page past the end of the log, and removes the page. A log that a killed process has left may have space for
   * small commits although the disk is full. Call this in a write transaction, in which no other process uses the end.
   *
   * @throws the system's error, such as ENOSPC
   */
  checkSpace(): void {
    const { size } = fstatSync(this.#log);
    try {
      // The first write may end at the last block that the log already has.
      for (let at = 0; at < page.length;) at += writeSync(this.#log, page, at, page.length - at, size + at);
    } finally {
      ftruncateSync(this.#log, size);
    }
  }

  /** Closes the log and its index. Close the connection first. */
  close(): void {
    closeSync(this.#log);
    closeSync(this.#index);
  }

  /** Returns whether the log contains all frames in the index. If the index is empty, the log may have older frames. */
  #isComplete({ frames, pageBytes, salts }: WalIndex, logBytes: number): boolean {
    if (frames === 0) return true;
    if (logBytes < logHeaderBytes + frames * (frameHeaderBytes + pageBytes)) return false;
    readSync(this.#log, this.#saltsOfLog, 0, this.#saltsOfLog.byteLength, saltsAt);
    return this.#saltsOfLog[0] === salts;
  }
}
