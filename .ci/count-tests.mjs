// `node .ci/count-tests.mjs REPORT`: reads a report of vitest, or one with the same numbers, and prints how many tests
// passed, failed and were skipped. A skipped test counts as failed, unless it is in `expected-skips`. Prints failures to
// standard error, one a line.
import { readFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";

const report = JSON.parse(readFileSync(process.argv[2], "utf8"));
// Each line has the start of a test's file and full name, a tab, and the reason.
const lines = readFileSync(new URL("expected-skips", import.meta.url), "utf8").split("\n");
const expected = lines.filter((line) => line !== "" && !line.startsWith("#")).map((line) => line.split("\t")[0]);

const files = (report.testResults ?? []).map(({ name, status, message, assertionResults }) => {
  // `.ci/copy-protoport` runs tests in another folder.
  const file = name.replace(`${process.cwd()}/`, "").replace(/^\/.*?\/(?=(?:test|protoport)\/)/, "");
  const tests = assertionResults.map((test) => ({ ...test, name: `${file} ${test.fullName}` }));
  return { name: file, status, message, tests };
});
const tests = files.flatMap((file) => file.tests);
const failed = tests.filter(({ status }) => status === "failed");
const skipped = tests.filter(({ status }) => !["passed", "failed"].includes(status));
const unexpected = skipped.filter(({ name }) => !expected.some((beginning) => name.startsWith(beginning)));
// Files that do not load, or whose hooks fail.
const broken = files.filter((file) => file.status === "failed" && !file.tests.some((test) => failed.includes(test)));

for (const { name, failureMessages } of failed) console.error(`${name}: ${firstLine(failureMessages?.[0])}`);
for (const { name, message } of broken) console.error(`${name}: ${firstLine(message)}`);
for (const { name } of unexpected) console.error(`skipped, but not in .ci/expected-skips: ${name}`);
console.log(report.numPassedTests, report.numFailedTests + unexpected.length, skipped.length - unexpected.length);

function firstLine(error = "") {
  return stripVTControlCharacters(error).trim().split("\n")[0];
}
