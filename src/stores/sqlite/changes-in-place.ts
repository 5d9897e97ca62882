import { closeSync, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { type WalIndex, WalIndexFile } from "./wal-index.ts";

/** What another program than SQLite has done to a file or its log, which have kept their names and inodes. */
export type ChangeInPlace = "file-written" | "log-cut";

// sqlite.org/fileformat.html#the_write_ahead_log: the header of the log and of each of its frames.
const logHeaderBytes = 32;
const frameHeaderBytes = 24;
const saltsAt = 16;

// Windows writes the time of a file that is still open much later.
const hasTimes = process.platform !== "win32";

/**
 * Watches for changes of a file and its log that SQLite has not made: another file copied over it, a log that was
 * truncated. Meanwhile any process may write to both by SQLite.
 *
 * The log is as long as its index says and begins with the same salts. The file is written by checkpoints alone, which
 * leave a trace in the index, and after a complete one it is as long as the index says. Not noticed is a copy of the same
 * length that is made between two looks, while a checkpoint is running.
 */
export class ChangesInPlace {
  readonly #indexFile: WalIndexFile;
  readonly #log: number;
  readonly #statFile: () => Stats;
  readonly #saltsOfLog = Buffer.alloc(8);
  /** The file at the last look. */
  #file: { readonly size: number; readonly writtenMs: number };
  /** What was in the index before that. */
  #indexBefore: WalIndex | undefined;
  #lastIndex: WalIndex | undefined;
  #found: ChangeInPlace | undefined;

  /**
   * @param path - the real path of the file, of which a connection has read from its log
   * @param statFile - returns the `stat` of the file
   */
  constructor(path: string, statFile: () => Stats) {
    this.#indexFile = new WalIndexFile(`${path}-shm`);
    this.#log = openSync(`${path}-wal`, "r");
    this.#statFile = statFile;
    this.#indexBefore = this.#lastIndex = this.#indexFile.read();
    this.#file = knownOf(statFile());
  }

  /** What was found. */
  get found(): ChangeInPlace | undefined {
    return this.#found;
  }

  /** Whether a checkpoint was running, or had been broken off, at the last look. */
  get mayBeCopying(): boolean {
    return this.#lastIndex !== undefined && isCopying(this.#lastIndex);
  }

  /** Returns what was done, from when it is found on; takes the `stat` of the file and the size of its log now. */
  find(file: Stats, logBytes: number): ChangeInPlace | undefined {
    const index = this.#indexFile.read();
    if (index === undefined) return this.#found;
    if (!this.#isLogWhole(index, logBytes) && this.#isStill(index, () => !this.#isLogWhole(index))) {
      this.#found = "log-cut";
    } else if (!isLengthRight(file, index) && this.#isStill(index, () => !isLengthRight(this.#statFile(), index))) {
      this.#found = "file-written";
    } else if (file.size !== this.#file.size || timeOf(file) !== this.#file.writtenMs) {
      if (this.#indexBefore !== undefined && !mayHaveCopied(this.#indexBefore, index)) this.#found = "file-written";
      // After the index was read: a checkpoint that ends in between changes the index again.
      this.#file = knownOf(this.#statFile());
      this.#indexBefore = index;
    } else {
      // Not the index of now: a checkpoint may have ended since the `stat`.
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

  /** Returns whether the log has all frames that the index counts. Without any, it may have those of before. */
  #isLogWhole(index: WalIndex, logBytes: number = fstatSync(this.#log).size): boolean {
    if (index.frames === 0) return true;
    if (logBytes < logHeaderBytes + index.frames * (frameHeaderBytes + index.pageBytes)) return false;
    readSync(this.#log, this.#saltsOfLog, 0, this.#saltsOfLog.length, saltsAt);
    return this.#saltsOfLog.readBigUint64BE() === index.salts;
  }

  /** Returns whether a finding still holds, and nothing was written meanwhile that would explain it. */
  #isStill(index: WalIndex, holds: () => boolean): boolean {
    if (!holds()) return false;
    const now = this.#indexFile.read();
    return now?.salts === index.salts && now.frames === index.frames && now.copied === index.copied && !isCopying(now);
  }
}

function knownOf(file: Stats): { readonly size: number; readonly writtenMs: number } {
  return { size: file.size, writtenMs: timeOf(file) };
}

function timeOf({ mtimeMs }: Stats): number {
  return hasTimes ? mtimeMs : 0;
}

function isCopying({ copied, copiedSoon }: WalIndex): boolean {
  return copiedSoon !== copied;
}

/** Returns whether a file is as long as the last checkpoint has made it. Only a complete one gives it its length. */
function isLengthRight({ size }: Stats, { frames, copied, pages, pageBytes }: WalIndex): boolean {
  return frames === 0 || copied < frames || size === pages * pageBytes;
}

/** Returns whether a checkpoint may have written to the file between two states of the index. */
function mayHaveCopied(before: WalIndex, now: WalIndex): boolean {
  if (isCopying(now)) return true;
  if (now.salts === before.salts) return now.copied !== before.copied;
  // The log was begun again. Nothing was copied since it had been copied completely, if no commit came after that, or one
  // that began the log and whose frames are in it. A commit without frames is one that a checkpoint has copied.
  const commits = now.commits - before.commits;
  const isCopiedBefore = commits === 0 || (commits === 1 && now.frames > 0);
  return !isCopiedBefore || before.copied < before.frames || now.copied > 0;
}
