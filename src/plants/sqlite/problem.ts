/** What is wrong with a database file, for an operator. */
export interface FileProblem {
  /** A clause that completes "plants.db: …". */
  readonly text: string;
  /**
   * Whether the fault can pass while the process lives. A full disk can be emptied; after a failed
   * fsync or on a damaged page nothing this process has in memory can be trusted any more.
   */
  readonly passing: boolean;
}

// Primary result codes (sqlite.org/rescode.html); the extended ones carry them in their low byte.
const problems: ReadonlyMap<number, FileProblem> = new Map([
  [3, { text: "permission was denied", passing: true }],
  [5, { text: "another process holds the lock on the file", passing: true }],
  [6, { text: "another process holds the lock on the file", passing: true }],
  [7, { text: "there is no memory left", passing: true }],
  [8, { text: "the file cannot be written", passing: true }],
  [10, { text: "reading or writing the disk failed", passing: false }],
  [11, { text: "the file is damaged", passing: false }],
  [13, { text: "the disk is full", passing: true }],
  [14, { text: "the file cannot be opened", passing: true }],
  [26, { text: "the file is not an SQLite database", passing: false }],
]);

/** Reads what `node:sqlite` threw; anything it did not throw is a fault of ours, and does not pass. */
export function fileProblemOf(fault: unknown): FileProblem {
  const known = isSqliteError(fault) ? problems.get(fault.errcode & 0xff) : undefined;
  return known ?? { text: fault instanceof Error ? fault.message : String(fault), passing: false };
}

function isSqliteError(fault: unknown): fault is Error & { readonly errcode: number } {
  return fault instanceof Error && "errcode" in fault && typeof fault.errcode === "number";
}
