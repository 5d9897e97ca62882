// `node .ci/count-tests.mjs REPORT`: reads a report of vitest, or one with the same numbers, and prints how many tests
// passed, failed and were skipped. A test that was skipped proves nothing: unless `expected-skips` names it, it is named
// on standard error and counts as failed.
import { readFileSync } from "node:fs";

const report = JSON.parse(readFileSync(process.argv[2], "utf8"));
// A line is the beginning of a test's file and full name, a tab, and the reason.
const lines = readFileSync(new URL("expected-skips", import.meta.url), "utf8").split("\n");
const expected = lines.filter((line) => line !== "" && !line.startsWith("#")).map((line) => line.split("\t")[0]);

const tests = (report.testResults ?? []).flatMap(({ name, assertionResults }) =>
  assertionResults.map(({ status, fullName }) => ({
    status,
    name: `${name.replace(`${process.cwd()}/`, "")} ${fullName}`,
  })),
);
const skipped = tests.filter(({ status }) => !["passed", "failed"].includes(status));
const unexpected = skipped.filter(({ name }) => !expected.some((beginning) => name.startsWith(beginning)));
for (const { name } of unexpected) console.error(`skipped, though .ci/expected-skips does not say why: ${name}`);
console.log(report.numPassedTests, report.numFailedTests + unexpected.length, skipped.length - unexpected.length);
