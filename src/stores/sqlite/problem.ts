import type { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../contract/store-health.ts";
import { StoreOpenError } from "../contract/store-options.ts";

/** Advice for an operator whose file may be damaged. Advises a restore last, because a restore undoes deletions. */
export const repairAdvice: string =
  'stop the server, run "plantstore check", then start the server; run "plantstore restore" with a backup only if the ' +
  "check reports damage";

const busyCode = 5;
const lockedCode = 6;
const ioErrorCode = 10;
const fullCode = 13;
const constraintCode = 19;

// Problems by result code (sqlite.org/rescode.html). The low byte of an extended code is the primary code.
const problemOfResult: ReadonlyMap<number, StoreProblem> = new Map([
  [3, { text: "permission denied", isTemporary: true }],
  [busyCode, { text: "another process holds the lock on the file", isTemporary: true }],
  [lockedCode, { text: "another process holds the lock on the file", isTemporary: true }],
  [7, { text: "out of memory", isTemporary: true }],
  [8, { text: "the file is not writable", isTemporary: true }],
  [ioErrorCode, { text: "reading from or writing to the disk failed", isTemporary: false }],
  [11, { text: "the file is damaged", isTemporary: false }],
  [fullCode, { text: "the disk is full", isTemporary: true }],
  [14, { text: "the file cannot be opened", isTemporary: true }],
  [26, { text: "the file is not an SQLite database", isTemporary: false }],
  // SQLITE_IOERR_SHMSIZE. The first connection to a file could not extend the -shm file.
  [4_874, { text: "its -shm file cannot be extended, probably because the disk is full", isTemporary: false }],
]);

/** Returns the problem for a `node:sqlite` error. Any other error is a `StoreOpenError` or a bug, and is permanent. */
export function fileProblemOf(fault: unknown): StoreProblem {
  const known =
    problemOfResult.get(codeOf(fault)) ?? problemOfResult.get(isDiskFull(fault) ? fullCode : primaryCodeOf(fault));
  return known ?? { text: fault instanceof Error ? fault.message : String(fault), isTemporary: false };
}

/** Returns an error for an operator. `what` describes the failed operation, such as "cannot open a.db". */
export function storeErrorOf(what: string, fault: unknown): StoreOpenError {
  return new StoreOpenError(`${what}: ${fileProblemOf(fault).text}`, { cause: fault });
}

/** Returns a checkpoint's problem. A failed write or sync is temporary: the next checkpoint writes all pages. */
export function checkpointProblemOf(fault: unknown): StoreProblem {
  const { text, isTemporary } = fileProblemOf(fault);
  return {
    text: `its write-ahead log cannot be copied into the file: ${text}`,
    isTemporary: isTemporary || primaryCodeOf(fault) === ioErrorCode,
  };
}

/** Reads the whole file and its log. Returns a description of the first inconsistent page, row or index, if any. */
export function findDamage(db: DatabaseSync): string | undefined {
  const result = String(db.prepare("PRAGMA quick_check(1)").get()?.["quick_check"]);
  return result === "ok" ? undefined : result.split("\n").at(-1);
}

/** @throws StoreOpenError that describes the first inconsistency in the file or its log */
export function assertUndamaged(db: DatabaseSync): void {
  const damage = findDamage(db);
  if (damage !== undefined) throw new StoreOpenError(`the file is damaged (${damage})`);
}

/** Returns whether a statement failed because another connection holds the lock. */
export function isLocked(fault: unknown): boolean {
  const code = primaryCodeOf(fault);
  return code === busyCode || code === lockedCode;
}

/** Returns whether a constraint or trigger refused a statement. */
export function isConstraintFault(fault: unknown): boolean {
  return primaryCodeOf(fault) === constraintCode;
}

function isDiskFull(fault: unknown): boolean {
  return fault instanceof Error && "code" in fault && (fault.code === "ENOSPC" || fault.code === "EDQUOT");
}

/** Returns the extended result code of a `node:sqlite` error, and 0 for other errors. */
export function codeOf(fault: unknown): number {
  return fault instanceof Error && "errcode" in fault && typeof fault.errcode === "number" ? fault.errcode : 0;
}

function primaryCodeOf(fault: unknown): number {
  return codeOf(fault) & 0xff;
}
