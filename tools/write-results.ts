import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder as project } from "./build/manifest.ts";

// Writes into docs/reference/results.md what suites that judge the gateway have reported: npm run results -- FOLDER
//
// `TEST_REPORTS=FOLDER .ci/run` and `.ci/nightly` leave the reports in FOLDER. A suite without one keeps its row, so the
// page has the last result of each. Run it on the commit that was tested.

/** What a suite reports: counts, and what they are of where that is not plain. */
export interface SuiteReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly detail?: string;
}

/** The row of a suite: its name, what it is, what its counts are of in brackets, and its last result. */
const row = /^(\| `([\w-]+)` \| [^|(]*?)(?: \([^|]*\))? \|.*$/gm;

/** Returns the page with the results of the suites of which there is a report. */
export function resultsPage(
  page: string,
  reportOf: (suite: string) => { readonly report: SuiteReport; readonly day: string } | undefined,
  commit: string,
): string {
  return page.replace(row, (kept, before: string, suite: string) => {
    const found = reportOf(suite);
    if (found === undefined) return kept;
    const { numPassedTests, numFailedTests, detail } = found.report;
    const what = detail === undefined ? before : `${before} (${detail})`;
    const [passed, failed] = [numPassedTests, numFailedTests].map((count) => count.toLocaleString("en"));
    return `${what} | ${passed} | ${failed} | ${found.day} | ${commit} |`;
  });
}

if (import.meta.main) {
  const page = join(project, "docs/reference/results.md");
  const commit = execFileSync("git", ["rev-parse", "--short=10", "HEAD"], { cwd: project, encoding: "utf8" }).trim();
  const before = readFileSync(page, "utf8");
  const after = resultsPage(
    before,
    (suite) => {
      const file = join(process.argv[2] ?? "", `${suite}.json`);
      if (!existsSync(file)) return undefined;
      return { report: JSON.parse(readFileSync(file, "utf8")), day: statSync(file).mtime.toISOString().slice(0, 10) };
    },
    commit,
  );
  if (after === before) throw new Error("no new report is there: TEST_REPORTS=FOLDER .ci/run leaves them in FOLDER");
  writeFileSync(page, after);
}
