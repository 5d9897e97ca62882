import { expect, test } from "vitest";
import { protoportTree } from "../../support/source-files.ts";

/** Source files that read with node:fs functions, which wait for a named pipe's writer. */
const readers: Readonly<Record<string, string>> = {
  "command-line/files/regular-file.ts": "opens files without waiting",
  "docs-page/docs-page.ts": "reads a file of the package",
  "docs-page/page-script.ts": "reads a file of the package",
  "proxy/definitions/definition.ts": "checks the output of buf from a pipe too, and handles no signals",
};

test("only the listed source files read files with node:fs", () => {
  const reads = /^import [^;]*\b(?:readFile|readFileSync|createReadStream)\b[^;]*? from "node:fs/m;
  const found = protoportTree.files.filter((file) => protoportTree.textOf(file).search(reads) >= 0);
  expect(found.toSorted()).toEqual(Object.keys(readers).toSorted());
});
