import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../packages/testing/src/process/child-program.ts";
import { type FileSuite, filePatternsOf, isFileSuite } from "../../packages/testing/src/suite.ts";
import { suites } from "../suites/suites.ts";

// A test file's path shows its suite. suites/NAME/ is the suite NAME, and `npm test` runs all other files.

const fileSuites = suites.filter(isFileSuite);

function filesOf(suite: FileSuite): string[] {
  const { include, exclude } = filePatternsOf(suite);
  return globSync(include, { cwd: projectFolder, exclude });
}

/** Returns the suite that a test file's path shows. */
function suiteOf(file: string): string {
  return /\/suites\/([^/]+)\//.exec(file)?.[1] ?? "unit";
}

test("every test file belongs to the suite of its path", () => {
  const files = globSync("{test,packages/*/test}/**/*.test.ts", {
    cwd: projectFolder,
    exclude: ["**/node_modules/**"],
  });
  const want = files.map((file) => `${suiteOf(file)} ${file}`);
  const found = fileSuites
    .filter(({ repeats }) => repeats === undefined)
    .flatMap((suite) => filesOf(suite).map((file) => `${suite.name} ${file}`));
  expect(found.toSorted()).toEqual(want.toSorted());
});

test.each(fileSuites)("the suite $name has test files", (suite) => {
  expect(filesOf(suite)).not.toEqual([]);
});

test.each(fileSuites.flatMap(({ repeats = [] }) => repeats))("%s, which a suite repeats, is a folder", (folder) => {
  expect(folder).toMatch(/\/$/);
  expect(existsSync(join(projectFolder, folder))).toBe(true);
});

test.each(suites.filter((suite) => suite.kind === "program"))("the program of the suite $name exists", (suite) => {
  expect(suite.program).toMatch(/^(?:packages\/[a-z-]+\/)?test\/suites\/[a-z0-9-]+\/run[a-z-]*\.ts$/);
  expect(existsSync(join(projectFolder, suite.program))).toBe(true);
});
