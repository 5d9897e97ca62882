import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder as project } from "../protoport/tools/build/manifest.ts";

// `npm run results -- FOLDER` writes the results of conformance suites and fuzzers to docs/reference/results.md.
//
// `TEST_REPORTS=FOLDER .ci/run` and `.ci/nightly` write the reports to FOLDER. A suite's row without a report does not
// change, so the page has the last result of each suite. Run the program on the commit that was tested.

/** A suite's report, with counts, and a detail such as the version or the counted unit. */
export interface SuiteReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly detail?: string;
}

/** Matches a suite's row, which has the suite's name, its description, a detail in brackets, and its last result. */
const row = /^(\| `([\w-]+)` \| [^|(]*?)(?: \([^|]*\))? \|.*$/gm;

/** Returns the page with the results from all suites that have a report. */
export function resultsPage(
  page: string,
  reportOf: (suite: string) => { readonly report: SuiteReport; readonly day: string } | undefined,
  commit: string,
): string {
  return page.replace(row, (unchanged, before: string, suite: string) => {
    const found = reportOf(suite);
    if (found === undefined) return unchanged;
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
  if (after === before) throw new Error("no new report found; TEST_REPORTS=FOLDER .ci/run writes reports to FOLDER");
  writeFileSync(page, after);
}
