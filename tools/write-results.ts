import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

// Writes docs/results.md from the reports of suites that judge the gateway: npm run results -- FOLDER
//
// `TEST_REPORTS=FOLDER .ci/run` and `.ci/nightly` leave them in FOLDER. What has no report there keeps the row that it
// has, so the page has the last result of each. Run it on the commit that was tested.

const project = resolve(import.meta.dirname, "..");
const page = join(project, "docs/results.md");

/** The suites on the page, by their scripts, and what each is. */
const suites: Readonly<Record<string, string>> = {
  "test:conformance":
    "Connect's conformance suite, on the gateway's own server, on its handler in servers of node's, and on its client",
  "test:h2spec": "h2spec, the conformance suite of HTTP/2, in its strict mode; header lists to and from Go's HPACK",
  "test:random-frames": "random sequences of HTTP/2 frames, which must end well and leave nothing behind",
  "test:random-json":
    "random JSON texts, hostile ones among them, which the quick and the exact reader must read alike",
  "test:random-messages": "random binary messages, which made code and protobuf-es must read and write alike",
  "test:faults": "faults planted in the source, one at a time: passed is what a test noticed",
};

/** What a suite reports: counts, and what they are of where that is not plain. */
export interface SuiteReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly detail?: string;
}

/** Returns the row of a suite on the page. */
export function resultRow(script: string, report: SuiteReport, day: string, commit: string): string {
  const { numPassedTests: passed, numFailedTests: failed, detail } = report;
  const what = `${suites[script] ?? ""}${detail === undefined ? "" : ` (${detail})`}`;
  return `| \`${script}\` | ${what} | ${inGroups(passed)} | ${inGroups(failed)} | ${day} | ${commit} |`;
}

function inGroups(count: number): string {
  return count.toLocaleString("en");
}

/** Returns the page with these rows, and those of the page before for other suites. */
export function resultsPage(before: string, rows: ReadonlyMap<string, string>): string {
  const known = Object.keys(suites).flatMap((script) => {
    const kept = before.split("\n").find((line) => line.startsWith(`| \`${script}\` |`));
    return rows.get(script) ?? kept ?? [];
  });
  return `# Results

To see how the gateway did last against suites that others wrote, and against chance. \`npm run results\` writes this page
from the reports of \`.ci/run\` and \`.ci/nightly\`; nothing in it is written by hand.

| suite | what it is | passed | failed | day | commit |
|---|---|---|---|---|---|
${known.join("\n")}
`;
}

function writeResults(folder: string): void {
  const commit = execFileSync("git", ["rev-parse", "--short=10", "HEAD"], { cwd: project, encoding: "utf8" }).trim();
  const rows = new Map<string, string>();
  for (const script of Object.keys(suites)) {
    const file = join(folder, `${script.replace(":", "-")}.json`);
    if (!existsSync(file)) continue;
    const report: SuiteReport = JSON.parse(readFileSync(file, "utf8"));
    rows.set(script, resultRow(script, report, statSync(file).mtime.toISOString().slice(0, 10), commit));
  }
  if (rows.size === 0) throw new Error(`no report is in ${folder}: TEST_REPORTS=FOLDER .ci/run leaves them there`);
  writeFileSync(page, resultsPage(existsSync(page) ? readFileSync(page, "utf8") : "", rows));
}

if (import.meta.main) writeResults(process.argv[2] ?? "");
