import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { projectFolder, runProgram } from "../support/process/child-program.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

test("a test that .ci/run does not expect to be skipped is named, and counts as failed", async () => {
  using folder = createTempFolder();
  const file = folder.file("report.json");
  const assertionResults = [
    { status: "passed", fullName: "a plant is deleted" },
    { status: "skipped", fullName: "the disk is synced" },
  ];
  const testResults = [{ name: `${projectFolder}test/plantstore/plants.test.ts`, assertionResults }];
  writeFileSync(file, JSON.stringify({ numPassedTests: 1, numFailedTests: 0, testResults }));
  const { stdout, stderr } = await runProgram(process.execPath, [`${projectFolder}.ci/count-tests.mjs`, file]);
  expect(stderr).toBe(
    "skipped, though .ci/expected-skips does not say why: test/plantstore/plants.test.ts the disk is synced\n",
  );
  expect(stdout).toBe("1 1 0\n");
});
