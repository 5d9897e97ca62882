import { describe, expect, test } from "vitest";
import { checkpointProblemOf, fileProblemOf, isLocked, isConstraintFault } from "../../../src/stores/sqlite/problem.ts";

const sqliteFault = (errcode: number): Error =>
  Object.assign(new Error("the message of SQLite"), { code: "ERR_SQLITE_ERROR", errcode });

const systemFault = (code: string): Error => Object.assign(new Error("write"), { code });

// Extended result codes, whose low byte is the primary one (sqlite.org/rescode.html).
// oxfmt-ignore
const rows: readonly { name: string; errcode: number; text: string; isTemporary: boolean }[] = [
  { name: "SQLITE_PERM", errcode: 3, text: "permission denied", isTemporary: true },
  { name: "SQLITE_BUSY", errcode: 5, text: "another process holds the lock on the file", isTemporary: true },
  { name: "SQLITE_BUSY_SNAPSHOT", errcode: 517, text: "another process holds the lock on the file", isTemporary: true },
  { name: "SQLITE_LOCKED", errcode: 6, text: "another process holds the lock on the file", isTemporary: true },
  { name: "SQLITE_NOMEM", errcode: 7, text: "out of memory", isTemporary: true },
  { name: "SQLITE_IOERR_NOMEM", errcode: 3082, text: "reading from or writing to the disk failed", isTemporary: false },
  { name: "SQLITE_READONLY_DBMOVED", errcode: 1032, text: "the file is not writable", isTemporary: true },
  { name: "SQLITE_IOERR_WRITE", errcode: 778, text: "reading from or writing to the disk failed", isTemporary: false },
  { name: "SQLITE_IOERR_FSYNC", errcode: 1034, text: "reading from or writing to the disk failed", isTemporary: false },
  { name: "SQLITE_IOERR_SHMSIZE", errcode: 4874,
    text: "its -shm file cannot be extended, probably because the disk is full", isTemporary: false },
  { name: "SQLITE_CORRUPT", errcode: 11, text: "the file is damaged", isTemporary: false },
  { name: "SQLITE_CORRUPT_INDEX", errcode: 779, text: "the file is damaged", isTemporary: false },
  { name: "SQLITE_FULL", errcode: 13, text: "the disk is full", isTemporary: true },
  { name: "SQLITE_CANTOPEN_ISDIR", errcode: 526, text: "the file cannot be opened", isTemporary: true },
  { name: "SQLITE_NOTADB", errcode: 26, text: "the file is not an SQLite database", isTemporary: false },
  { name: "SQLITE_ERROR", errcode: 1, text: "the message of SQLite", isTemporary: false },
];

describe("the problem with a database file", () => {
  test.each(rows)('is "$text" for $name (isTemporary: $isTemporary)', ({ errcode, text, isTemporary }) => {
    expect(fileProblemOf(sqliteFault(errcode))).toEqual({ text, isTemporary });
    expect(isLocked(sqliteFault(errcode))).toBe(text.includes("holds the lock"));
    expect(isConstraintFault(sqliteFault(errcode))).toBe(false);
  });

  test.each([
    { name: "an error", fault: new TypeError("no such thing"), text: "no such thing" },
    { name: "a thrown string", fault: "gone", text: "gone" },
    { name: "ENOSPC", fault: systemFault("ENOSPC"), text: "the disk is full", isTemporary: true },
    { name: "EDQUOT", fault: systemFault("EDQUOT"), text: "the disk is full", isTemporary: true },
    { name: "EIO", fault: systemFault("EIO"), text: "write" },
  ])('is "$text" for $name, which is not from SQLite', ({ fault, text, isTemporary = false }) => {
    expect(fileProblemOf(fault)).toEqual({ text, isTemporary });
    expect(isLocked(fault)).toBe(false);
  });

  test.each([
    { name: "SQLITE_IOERR_WRITE", errcode: 778, isTemporary: true },
    { name: "SQLITE_IOERR_FSYNC", errcode: 1034, isTemporary: true },
    { name: "SQLITE_FULL", errcode: 13, isTemporary: true },
    { name: "SQLITE_CORRUPT", errcode: 11, isTemporary: false },
  ])("names the log when a checkpoint fails with $name", ({ errcode, isTemporary }) => {
    expect(checkpointProblemOf(sqliteFault(errcode))).toEqual({
      text: `its write-ahead log cannot be copied into the file: ${fileProblemOf(sqliteFault(errcode)).text}`,
      isTemporary,
    });
  });

  test("is a constraint fault for all constraint errors", () => {
    for (const errcode of [19, 787, 1811]) expect(isConstraintFault(sqliteFault(errcode))).toBe(true);
  });
});
