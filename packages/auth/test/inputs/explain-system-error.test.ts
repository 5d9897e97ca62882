import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { explainSystemError } from "../../src/inputs/explain-system-error.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

/** What the system says of a file; root may do whatever the mode of a file forbids. */
function refusal(code: string): Error {
  return Object.assign(new Error(`${code}: in the words of the system, open 'FILE'`), { code, path: "FILE" });
}

function faultOf(act: () => void): unknown {
  try {
    return act();
  } catch (fault) {
    return fault;
  }
}

using folder = createTempFolder();
const file = folder.file("file");
writeFileSync(file, "");

test.each([
  { fault: faultOf(() => readFileSync("absent")), want: "absent or its parent directory does not exist" },
  { fault: faultOf(() => writeFileSync(folder.path, "")), want: `${folder.path} is a directory, not a file` },
  { fault: faultOf(() => mkdirSync(file)), want: `${file} already exists` },
  { fault: faultOf(() => readFileSync(`${file}/x`)), want: `a parent of ${file}/x is a file, not a directory` },
  { fault: refusal("EACCES"), want: "permission denied: this user cannot read or write FILE" },
  { fault: refusal("EPERM"), want: "permission denied: this user cannot read or write FILE" },
  { fault: refusal("ENOSPC"), want: "no space left on the disk of FILE" },
  { fault: refusal("EROFS"), want: "FILE is on a read-only file system" },
  { fault: refusal("EMFILE"), want: "EMFILE: in the words of the system, open 'FILE'" },
  { fault: new Error("another sentence"), want: "another sentence" },
  { fault: Object.assign(new Error("an odd code"), { code: "constructor", path: "FILE" }), want: "an odd code" },
  { fault: "a text", want: "a text" },
])("$want", ({ fault, want }) => {
  expect(explainSystemError(fault)).toBe(want);
});
