import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { projectFolder, runProgram } from "../../../../protoport/testing/src/process/child-program.ts";
import { createTempFolder } from "../../../../protoport/testing/src/process/temp-folder.ts";

test.each(
  // oxfmt-ignore
  [
    ["an unexpectedly skipped test counts as failed", `${projectFolder}test/plants.test.ts`,
      [{ status: "passed" }, { status: "skipped", fullName: "the disk is synced" }],
      ["1 1 0", "skipped, but not in .ci/expected-skips: test/plants.test.ts the disk is synced"], undefined],
    ["a failed test is printed with the first line of its error", `${projectFolder}test/plants.test.ts`,
      [{ status: "failed", fullName: "a plant is deleted", failureMessages: ["\x1b[31mError: no\x1b[39m\n  at x"] }],
      ["0 1 0", "test/plants.test.ts a plant is deleted: Error: no"], undefined],
    ["a file whose clean-up failed is printed", "/tmp/tmp.X/protoport/gateway/test/fuzz.test.ts",
      [{ status: "passed" }], ["1 0 0", "protoport/gateway/test/fuzz.test.ts: a timer"], "a timer\nis left"],
  ],
)("%s", async (_name, file, tests, want, message) => {
  using folder = createTempFolder();
  const report = folder.file("report.json");
  const assertionResults = tests.map((each) => ({ fullName: "a row", ...each }));
  const numPassedTests = tests.filter(({ status }) => status === "passed").length;
  const numFailedTests = tests.filter(({ status }) => status === "failed").length;
  const status = message === undefined && numFailedTests === 0 ? "passed" : "failed";
  const testResults = [{ name: file, status, message, assertionResults }];
  writeFileSync(report, JSON.stringify({ numPassedTests, numFailedTests, testResults }));
  const { stdout, stderr } = await runProgram(process.execPath, [`${projectFolder}.ci/count-tests.mjs`, report]);
  expect([stdout, stderr]).toEqual(want.map((line) => `${line}\n`));
});
