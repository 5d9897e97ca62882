import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { isFileSuite } from "../../protoport/testing/src/suite.ts";
import { suites } from "../../test/suites/suites.ts";
import { projectFolder } from "../../protoport/tools/build/manifest.ts";

/** The members of vitest's report that are read here. */
interface Report {
  readonly testResults: readonly { readonly name: string; readonly assertionResults: readonly unknown[] }[];
}

/** The suites that require only `npm ci` to list their tests. */
const names = suites
  .filter(isFileSuite)
  .filter(({ needs, prepare }) => needs === undefined && prepare === undefined)
  .map(({ name }) => name);

/** Returns a line with the number of tests for each file and suite, without running the tests. */
export function countTests(): string {
  const folder = mkdtempSync(join(tmpdir(), "test-counts-"));
  const lines = names.flatMap((project) => {
    const file = join(folder, `${project}.json`);
    // No test has this name, so all tests are counted as skipped.
    const options = ["-t", "^$", "--maxWorkers=2", "--reporter=json", `--outputFile=${file}`];
    execFileSync("npx", ["vitest", "run", "--project", project, ...options], { cwd: projectFolder, stdio: "ignore" });
    const { testResults }: Report = JSON.parse(readFileSync(file, "utf8"));
    const counts = testResults.map(({ name, assertionResults }) => ({ name, count: assertionResults.length }));
    const total = counts.reduce((sum, { count }) => sum + count, 0);
    const ofFiles = counts.map(({ name, count }) => `${project} ${relative(projectFolder, name)}: ${count}`);
    return [`${project}: ${total}`, ...ofFiles.toSorted()];
  });
  rmSync(folder, { recursive: true });
  return `${lines.join("\n")}\n`;
}
