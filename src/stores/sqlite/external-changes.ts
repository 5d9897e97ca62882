import { closeSync, fstatSync, openSync, readSync, type Stats } from "node:fs";
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
  readonly #statFile: () => Stats;
  readonly #saltsOfLog = Buffer.alloc(8);
  /** The state of the file at the last check. */
  #file: { readonly size: number; readonly writtenMs: number };
  /** The state of the index before that check. */
  #indexBefore: WalIndex | undefined;
  #lastIndex: WalIndex | undefined;
  #found: ExternalChange | undefined;

  /**
   * @param path - the real path of the file; a connection must have read from its log
   * @param statFile - returns the `stat` of the file
   */
  constructor(path: string, statFile: () => Stats) {
    this.#indexFile = new WalIndexFile(`${path}-shm`);
    this.#log = openSync(`${path}-wal`, "r");
    this.#statFile = statFile;
    this.#indexBefore = this.#lastIndex = this.#indexFile.read();
    this.#file = toFileState(statFile());
  }

  /** The change that was detected, if any. */
  get found(): ExternalChange | undefined {
    return this.#found;
  }

  /** Whether a checkpoint was running, or was interrupted, at the last check. */
  get isCheckpointing(): boolean {
    return this.#lastIndex !== undefined && isCheckpointRunning(this.#lastIndex);
  }

  /**
   * Checks the current `stat` of the file and size of its log. Returns the change that this or an earlier check has
   * found.
   */
  find(file: Stats, logBytes: number): ExternalChange | undefined {
    const index = this.#indexFile.read();
    if (index === undefined) return this.#found;
    if (!this.#isLogComplete(index, logBytes) && this.#isExternalChange(index, () => !this.#isLogComplete(index))) {
      this.#found = "log-cut";
    } else if (
      !hasExpectedLength(file, index) &&
      this.#isExternalChange(index, () => !hasExpectedLength(this.#statFile(), index))
    ) {
      this.#found = "file-written";
    } else if (file.size !== this.#file.size || timeOf(file) !== this.#file.writtenMs) {
      if (this.#indexBefore !== undefined && !mayHaveBackfilled(this.#indexBefore, index)) this.#found = "file-written";
      // Read after the index: if a checkpoint finishes in between, it changes the index again, so the next check sees
      // it.
      this.#file = toFileState(this.#statFile());
      this.#indexBefore = index;
    } else {
      // The previous index, because a checkpoint may have finished between the `stat` and the current index.
      this.#indexBefore = this.#lastIndex;
    }
    this.#lastIndex = index;
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
  #isLogComplete(index: WalIndex, logBytes: number = fstatSync(this.#log).size): boolean {
    if (index.frames === 0) return true;
    if (logBytes < logHeaderBytes + index.frames * (frameHeaderBytes + index.pageBytes)) return false;
    readSync(this.#log, this.#saltsOfLog, 0, this.#saltsOfLog.length, saltsAt);
    return this.#saltsOfLog.readBigUint64BE() === index.salts;
  }

  /**
   * Returns whether a condition still holds and the index has not changed meanwhile, so that SQLite is not the cause.
   */
  #isExternalChange(index: WalIndex, holds: () => boolean): boolean {
    if (!holds()) return false;
    const now = this.#indexFile.read();
    return (
      now?.salts === index.salts &&
      now.frames === index.frames &&
      now.backfilled === index.backfilled &&
      // equivalent mutant: no checkpoint of SQLite fulfils a condition while it runs.
      !isCheckpointRunning(now)
    );
  }
}

function toFileState(file: Stats): { readonly size: number; readonly writtenMs: number } {
  return { size: file.size, writtenMs: timeOf(file) };
}

function timeOf({ mtimeMs }: Stats): number {
  return hasTimes ? mtimeMs : 0;
}

function isCheckpointRunning({ backfilled, backfillAttempted }: WalIndex): boolean {
  return backfillAttempted !== backfilled;
}

/**
 * Returns whether a file has the length that the last checkpoint has set. Only a complete checkpoint sets the length.
 */
function hasExpectedLength({ size }: Stats, { frames, backfilled, pages, pageBytes }: WalIndex): boolean {
  return frames === 0 || backfilled < frames || size === pages * pageBytes;
}

/** Returns whether a checkpoint may have written to the file between two states of the index. */
function mayHaveBackfilled(before: WalIndex, now: WalIndex): boolean {
  if (isCheckpointRunning(now)) return true;
  if (now.salts === before.salts) return now.backfilled !== before.backfilled;
  // The log was restarted, so it had been backfilled completely. Nothing was backfilled since if no commit followed, or
  // a single one, which restarted the log and still has frames in it. If the log has no frames after a commit, a
  // checkpoint has backfilled the commit.
  const commits = now.commits - before.commits;
  const wasBackfilled = commits === 0 || (commits === 1 && now.frames > 0);
  return !wasBackfilled || before.backfilled < before.frames || now.backfilled > 0;
}
