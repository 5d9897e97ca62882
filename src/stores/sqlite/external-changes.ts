import { closeSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { type WalIndex, WalIndexFile } from "./wal-index.ts";

/** A change in place to a file or its log that SQLite did not make. */
export type ExternalChange = "file-written" | "log-cut";

// sqlite.org/fileformat.html#the_write_ahead_log: the header of the log and of each of its frames.
const logHeaderBytes = 32;
const frameHeaderBytes = 24;
const saltsAt = 16;

// Windows updates the time of an open file much later.
const hasTimes = process.platform !== "win32";

/**
 * Detects changes to a file and its log that SQLite did not make, such as another file copied over it, or a truncated
 * log. Other processes may write to both with SQLite at the same time.
 *
 * The log must have at least the length in its index, and start with the salts in the index. The file is written only
 * by checkpoints, which change the index. After a complete checkpoint it has the length in the index. Not detected: a
 * file of the same length that is copied over it between two checks during which a checkpoint runs.
 */
export class ExternalChanges {
  readonly #indexFile: WalIndexFile;
  readonly #log: number;
  readonly #saltsOfLog = new BigUint64Array(1);
  /** The state of the file at the last check, and the index before that. */
  #file: Stats;
  #index: WalIndex | undefined;
  #found: ExternalChange | undefined;

  /** @param path - the real path of the file; a connection must have read from its log */
  constructor(path: string) {
    this.#indexFile = new WalIndexFile(`${path}-shm`);
    this.#log = openSync(`${path}-wal`, "r");
    this.#index = this.#indexFile.read();
    this.#file = statSync(path);
  }

  /** The change that was detected, if any. */
  get found(): ExternalChange | undefined {
    return this.#found;
  }

  /** Returns the index of the log. Read it before the `stat` of the file and of the log, and call {@link find} then. */
  readIndex(): WalIndex | undefined {
    return this.#indexFile.read();
  }

  /**
   * Checks the `stat` of the file and the size of its log with the index before them. Returns the change that this or
   * an earlier check has found.
   */
  find(index: WalIndex | undefined, file: Stats, logBytes: number): ExternalChange | undefined {
    if (index === undefined) return this.#found;
    const isComplete = this.#isLogComplete(index, logBytes);
    const hasLength = hasExpectedLength(file, index);
    const isWritten = !hasLength || hasChanged(this.#file, file);
    if (!isComplete || isWritten) {
      // If SQLite is the cause, it has changed the index between the reads before and after.
      const now = this.#indexFile.read();
      if (now === undefined) return this.#found;
      const before = hasLength ? this.#index : index;
      // Only a restart of the log changes the salts.
      if (!isComplete && now.salts === index.salts) this.#found = "log-cut";
      else if (isWritten && before !== undefined && !mayHaveBackfilled(before, now)) this.#found = "file-written";
    }
    this.#file = file;
    this.#index = index;
    return this.#found;
  }

  /** Closes the files, after the connection. */
  close(): void {
    closeSync(this.#log);
    this.#indexFile.close();
  }

  /**
   * Returns whether the log contains all frames of the index. If the index has no frames, the log may contain older
   * ones.
   */
  #isLogComplete({ frames, pageBytes, salts }: WalIndex, logBytes: number): boolean {
    if (frames === 0) return true;
    if (logBytes < logHeaderBytes + frames * (frameHeaderBytes + pageBytes)) return false;
    readSync(this.#log, this.#saltsOfLog, 0, this.#saltsOfLog.byteLength, saltsAt);
    return this.#saltsOfLog[0] === salts;
  }
}

function hasChanged(before: Stats, now: Stats): boolean {
  return now.size !== before.size || (hasTimes && now.mtimeMs !== before.mtimeMs);
}

/**
 * Returns whether a file has the length that the last checkpoint has set. Only a complete checkpoint sets the length.
 */
function hasExpectedLength({ size }: Stats, { frames, backfilled, pages, pageBytes }: WalIndex): boolean {
  // More backfilled frames than there are: a commit and a checkpoint took place during the read of the index.
  return frames === 0 || backfilled !== frames || size === pages * pageBytes;
}

/** Returns whether a checkpoint may have written to the file between two states of the index. */
function mayHaveBackfilled(before: WalIndex, now: WalIndex): boolean {
  // A checkpoint is running, or was interrupted.
  if (now.backfillAttempted !== now.backfilled) return true;
  if (now.salts === before.salts) return now.backfilled !== before.backfilled;
  // The log was restarted, so it had been backfilled completely. Nothing was backfilled since if no commit followed, or
  // a single one, which restarted the log and still has frames in it. If the log has no frames after a commit, a
  // checkpoint has backfilled the commit.
  const commits = now.commits - before.commits;
  const wasBackfilled = commits === 0 || (commits === 1 && now.frames > 0);
  return !wasBackfilled || before.backfilled < before.frames || now.backfilled > 0;
}
