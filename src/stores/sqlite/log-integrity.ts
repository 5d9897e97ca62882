import { closeSync, openSync, readSync } from "node:fs";
import { type WalIndex, WalIndexFile } from "./wal-index.ts";

// The headers that the log and each frame have (sqlite.org/fileformat.html#the_write_ahead_log).
const logHeaderBytes = 32;
const frameHeaderBytes = 24;
const saltsAt = 16;

/**
 * Detects that another program has truncated or overwritten a write-ahead log. The log is shorter than its index says,
 * or starts with other salts. Other processes may write to the log with SQLite at the same time. Time stamps are not
 * compared, because touch, backups and restores of a folder change them without changing the content.
 */
export class LogIntegrity {
  readonly #indexFile: WalIndexFile;
  readonly #log: number;
  readonly #saltsOfLog = new BigUint64Array(1);
  #isCut = false;

  /** @param path - the file's real path. A connection must have read from its log */
  constructor(path: string) {
    this.#indexFile = new WalIndexFile(`${path}-shm`);
    this.#log = openSync(`${path}-wal`, "r");
  }

  /** Whether a check has found that the log was truncated or overwritten. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Returns the log's index. Read it before the log's `stat`, then call {@link check}. */
  readIndex(): WalIndex | undefined {
    return this.#indexFile.read();
  }

  /**
   * Checks the log's size with the index that was read before it. Returns whether this or an earlier check has found
   * that the log was truncated or overwritten.
   */
  check(index: WalIndex | undefined, logBytes: number): boolean {
    if (index === undefined || this.#isComplete(index, logBytes)) return this.#isCut;
    // If SQLite has restarted the log since the index was read, the index has other salts now.
    if (this.#indexFile.read()?.salts === index.salts) this.#isCut = true;
    return this.#isCut;
  }

  /** Closes the files, after the connection. */
  close(): void {
    closeSync(this.#log);
    this.#indexFile[Symbol.dispose]();
  }

  /** Returns whether the log contains all frames in the index. If the index has none, the log may have older ones. */
  #isComplete({ frames, pageBytes, salts }: WalIndex, logBytes: number): boolean {
    if (frames === 0) return true;
    if (logBytes < logHeaderBytes + frames * (frameHeaderBytes + pageBytes)) return false;
    readSync(this.#log, this.#saltsOfLog, 0, this.#saltsOfLog.byteLength, saltsAt);
    return this.#saltsOfLog[0] === salts;
  }
}
