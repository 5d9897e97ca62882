import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { type FileSuite, filePatternsOf, isFileSuite } from "../../../../protoport/testing/src/suite.ts";
import { suites } from "../../suites.ts";

// A test file's path shows its suite. suites/NAME/ is the suite NAME, and `npm test` runs all other files.

const fileSuites = suites.filter(isFileSuite);

function filesOf(suite: FileSuite): string[] {
  const { include, exclude } = filePatternsOf(suite);
  return globSync(include, { cwd: projectFolder, exclude });
}

const options = { cwd: projectFolder, exclude: ["**/node_modules/**"] };
const testFiles = globSync("{test,protoport/test,protoport/*/test}/**/*.test.ts", options);
const suiteOf = (file: string): string => /\/suites\/([^/]+)\//.exec(file)?.[1] ?? "unit";

test("every test file belongs to the suite that its path names", () => {
  const want = testFiles.map((file) => `${suiteOf(file)} ${file}`);
  const found = fileSuites.flatMap((suite) =>
    filesOf({ ...suite, repeats: [] }).map((file) => `${suite.name} ${file}`),
  );
  expect(found.toSorted()).toEqual(want.toSorted());
});

test("the suite long repeats every file that tests only some combinations", () => {
  const reduced = testFiles.filter((file) =>
    /\b(?:rows|ways)For\(/.test(readFileSync(join(projectFolder, file), "utf8")),
  );
  const found = fileSuites.find(({ name }) => name === "long")?.repeats?.toSorted();
  expect(found).toEqual(reduced.filter((file) => suiteOf(file) === "unit").toSorted());
});
