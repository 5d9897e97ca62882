import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { explainSystemError } from "../../src/inputs/text-file.ts";
import { createTempFolder } from "@protoport/testing/process";

/** Returns a simulated system error for FILE, because root ignores file modes and cannot cause a real error. */
const systemError = (code: string): Error =>
  Object.assign(new Error(`${code}: the system's message, open 'FILE'`), { code, path: "FILE" });

function errorOf(act: () => void): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

using folder = createTempFolder();
const file = folder.write("file", "");
const twoErrors = [new Error("connect ECONNREFUSED ::1:1"), new Error("connect ETIMEDOUT")];

test.each([
  { error: errorOf(() => readFileSync("absent")), want: "absent or its parent directory does not exist" },
  { error: errorOf(() => writeFileSync(folder.path, "")), want: `${folder.path} is a directory, not a file` },
  { error: errorOf(() => mkdirSync(file)), want: `${file} already exists` },
  { error: errorOf(() => readFileSync(`${file}/x`)), want: `a parent of ${file}/x is a file, not a directory` },
  { error: systemError("EACCES"), want: "permission denied: this user cannot read or write FILE" },
  { error: systemError("EPERM"), want: "permission denied: this user cannot read or write FILE" },
  { error: systemError("ENOSPC"), want: "no space left on the disk of FILE" },
  { error: systemError("EROFS"), want: "FILE is on a read-only file system" },
  { error: systemError("EMFILE"), want: "EMFILE: the system's message, open 'FILE'" },
  { error: new Error("another sentence"), want: "another sentence" },
  { error: Object.assign(new Error("an odd code"), { code: "constructor", path: "FILE" }), want: "an odd code" },
  { error: new AggregateError(twoErrors), want: "connect ECONNREFUSED ::1:1; connect ETIMEDOUT" },
  { error: "a string", want: "a string" },
])('explainSystemError returns "$want"', ({ error, want }) => expect(explainSystemError(error)).toBe(want));
