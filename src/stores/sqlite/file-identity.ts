import { closeSync, fstatSync, ftruncateSync, openSync, readSync, type Stats, statSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../contract/store-health.ts";
import { lockTimeoutMsDefault } from "./transaction.ts";

const logGone = "its write-ahead log was moved, replaced or deleted";

// If an operator must act, a restarted server would use an empty store or another file or log, which now has the name.
const problems = {
  fileGone: { text: "the file was moved, replaced or deleted", isTemporary: false, needsOperator: true },
  logSaved: { text: `${logGone}; every acknowledged deletion is in the file`, isTemporary: false },
  logLost: {
    text: `${logGone}; a restart without it may undo acknowledged deletions`,
    isTemporary: false,
    needsOperator: true,
  },
  logDamaged: {
    text: "its write-ahead log was truncated or overwritten; a restart may undo acknowledged deletions",
    isTemporary: false,
    needsOperator: true,
  },
  // The next process that opens the file would create another -shm file, and ignore this process's locks.
  locksGone: {
    text: "its -shm file, which holds the locks, was moved, replaced or deleted; restart the server",
    isTemporary: false,
  },
} as const satisfies Record<string, StoreProblem>;

// Header sizes of the log and of each frame (sqlite.org/fileformat.html#the_write_ahead_log).
const logHeaderBytes = 32;
const walFrameHeaderBytes = 24;
const saltsAt = 16;

// As large as a page of the file.
const page = new Uint8Array(4_096);

/**
 * Checks whether an open file, its write-ahead log and its -shm file still have their names, and whether the log is
 * complete. Otherwise, commits are lost at the next start. Writes by another program into the file are not detected,
 * because checkpoints of other processes also write into the file.
 *
 * A truncated log is shorter than its index says. An overwritten log starts with other salts. Timestamps are not
 * compared, because `touch` and folder backups change timestamps without changing the content.
 */
export class FileIdentity {
  readonly #db: DatabaseSync;
  readonly #lockTimeoutMs: number;
  readonly #findFile: FindFile;
  readonly #findLog: FindFile;
  readonly #findLocks: FindFile;
  readonly #log: number;
  readonly #index: number;
  readonly #readIndex: () => WalIndex | undefined;
  readonly #saltsOfLog = new BigUint64Array(1);
  readonly #reader: DatabaseSync;

  /**
   * @param lockTimeoutMs - how long to wait for connections that still read older content, in milliseconds
   * @throws if the file, an absolute path, or its log does not exist
   */
  constructor(file: string, db: DatabaseSync, lockTimeoutMs: number = lockTimeoutMsDefault) {
    this.#db = db;
    this.#lockTimeoutMs = lockTimeoutMs;
    // SQLite puts the log next to the real file, even if the file was opened through a link.
    const realPath = db.location() ?? file;
    this.#reader = new DatabaseSync(realPath, { readOnly: true });
    // SQLite opens the log at the first read.
    for (const connection of [db, this.#reader]) connection.exec("SELECT 1 FROM sqlite_schema");
    this.#findFile = prepareFindFile(file);
    this.#findLog = prepareFindFile(`${realPath}-wal`);
    this.#findLocks = prepareFindFile(`${realPath}-shm`);
    this.#log = openSync(`${realPath}-wal`, "r+");
    this.#index = openSync(`${realPath}-shm`, "r");
    this.#readIndex = prepareIndexReader(this.#index);
  }

  /**
   * Returns the problem, if any. If the file or its log was moved or deleted, first copies the open log into the open
   * file. If the log is damaged, closes the connection, so that SQLite never copies the log.
   *
   * @throws the system's error when the log cannot be read
   */
  findProblem(): StoreProblem | undefined {
    if (!this.#db.isOpen) return problems.logDamaged;
    // Reads the index before the log's size, because other processes may append to the log meanwhile.
    const index = this.#readIndex();
    const [file, log] = [this.#findFile(), this.#findLog()];
    const { size } = typeof log === "string" ? fstatSync(this.#log) : log;
    // The salts have changed if SQLite has restarted the log since the index was read.
    if (index !== undefined && !this.#isComplete(index, size) && this.#readIndex()?.salts === index.salts) {
      this.#db.close();
      return problems.logDamaged;
    }
    // A moved file has another name now, under which SQLite would not find the log.
    if (file === "missing") checkpointLog(this.#db, this.#lockTimeoutMs);
    if (typeof file === "string") return problems.fileGone;
    // Another process may use the new log, and only one log may be copied into the file.
    if (log === "other") return problems.logLost;
    if (log === "missing") return problems[checkpointLog(this.#db, this.#lockTimeoutMs) ? "logSaved" : "logLost"];
    return typeof this.#findLocks() === "string" ? problems.locksGone : undefined;
  }

  /** Returns whether the log contains all frames in the index. If the index is empty, the log may have older frames. */
  #isComplete({ frames, pageBytes, salts }: WalIndex, logBytes: number): boolean {
    if (frames === 0) return true;
    if (logBytes < logHeaderBytes + frames * (walFrameHeaderBytes + pageBytes)) return false;
    readSync(this.#log, this.#saltsOfLog, 0, this.#saltsOfLog.byteLength, saltsAt);
    return this.#saltsOfLog[0] === salts;
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

  /** Closes the file, and returns {@link findProblem} from just before. */
  close(): StoreProblem | undefined {
    const problem = this.findProblem();
    // The last connection to close copies the log into the file, unless the last connection is read-only.
    for (const each of [this.#reader, this.#db]) if (each.isOpen) each.close();
    // Closing a descriptor of the -shm file releases the locks of the connections (POSIX).
    closeSync(this.#log);
    closeSync(this.#index);
    return problem;
  }
}

/** Returns the file's `stat` if the path still refers to the same file. */
type FindFile = () => Stats | "missing" | "other";

function prepareFindFile(path: string): FindFile {
  const opened = statSync(path);
  return () => {
    try {
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined) return "missing";
      return found.ino === opened.ino && found.dev === opened.dev ? found : "other";
    } catch {
      // The path no longer leads to the file, because a folder is not readable or a link is broken.
      return "other";
    }
  };
}

/** Copies the log into the file. Returns whether the file now durably contains every commit. */
function checkpointLog(db: DatabaseSync, lockTimeoutMs: number): boolean {
  try {
    db.exec(`PRAGMA busy_timeout = ${lockTimeoutMs}`);
    // `busy` is 0 if the whole log was copied and synced (sqlite.org/c3ref/wal_checkpoint_v2.html).
    return db.prepare("PRAGMA wal_checkpoint(FULL)").get()?.["busy"] === 0n;
  } catch {
    return false;
  }
}

/** The write-ahead log's state in the shared index (sqlite.org/walformat.html#the_wal_index_file_format). */
interface WalIndex {
  /** Number of commits since the first connection built the index from the log, modulo 2^32. */
  readonly commits: number;
  readonly frames: number;
  readonly pageBytes: number;
  /** The log's salts, as eight bytes in native order. The salts change when the log is restarted. */
  readonly salts: bigint;
}

// The index starts with two copies of a header of 48 bytes. Sizes are in 4-byte words.
const headerWords = 12;
const indexWords = 2 * headerWords;

// A writer changes both header copies in less than a microsecond. If the writer was killed between the changes, the
// copies differ until the next connection reads and repairs the header.
const maxAttempts = 1_000;

/**
 * Prepares a function that reads the log's current state from a -shm file, in which all connections share the log's
 * index. The function returns `undefined` if the header's two copies differ at every attempt.
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
    for (let attempts = 0; attempts < maxAttempts; attempts++) {
      readSync(descriptor, words, 0, words.byteLength, 0);
      if (!areCopiesEqual()) continue;
      const pageBytes = halfWords[7] ?? 0;
      return {
        commits: words[2] ?? 0,
        frames: words[4] ?? 0,
        // A page size of 65,536 bytes does not fit into two bytes, and is stored as 1.
        pageBytes: pageBytes === 1 ? 65_536 : pageBytes,
        salts: doubleWords[4] ?? 0n,
      };
    }
    return undefined;
  };
}
