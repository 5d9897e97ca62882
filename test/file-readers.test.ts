import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { allSourceFiles, sourcePath } from "./support/source-files.ts";

/** Source files that read with node:fs functions, which wait for a named pipe's writer. */
const readers: Readonly<Record<string, string>> = {
  "command-line/files/regular-file.ts": "opens files without waiting",
  "docs-page/docs-page.ts": "reads a file of the package",
  "docs-page/page-script.ts": "reads a file of the package",
  "plantstore/command/demo.ts": "reads the token that a demo has written, before it handles signals",
  "plantstore/command/stores.ts": "imports identifiers from a pipe too, before it handles signals",
  "plantstore/stores/sqlite/file-names.ts": "reads /proc/self/mountinfo, which is never a pipe",
  "proxy/check/read-services.ts": "checks the output of buf from a pipe too, and handles no signals",
};

test("only the listed source files read files with node:fs", () => {
  const reads = /^import [^;]*\b(?:readFile|readFileSync|createReadStream)\b[^;]*? from "node:fs/m;
  const found = allSourceFiles().filter((file) => readFileSync(sourcePath(file), "utf8").search(reads) >= 0);
  expect(found.toSorted()).toEqual(Object.keys(readers).toSorted());
});
