import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../../../protoport/testing/src/process/child-program.ts";
import { type FileSuite, filePatternsOf, isFileSuite } from "../../../../protoport/testing/src/suite.ts";
import { suites } from "../../suites.ts";

// A test file's path shows its suite. suites/NAME/ is the suite NAME, and `npm test` runs all other files.

const fileSuites = suites.filter(isFileSuite);

function filesOf(suite: FileSuite): string[] {
  const { include, exclude } = filePatternsOf(suite);
  return globSync(include, { cwd: projectFolder, exclude });
}

const testFiles = globSync("{test,protoport/test,protoport/*/test}/**/*.test.ts", {
  cwd: projectFolder,
  exclude: ["**/node_modules/**"],
});

/** Returns the suite that a test file's path shows. */
function suiteOf(file: string): string {
  return /\/suites\/([^/]+)\//.exec(file)?.[1] ?? "unit";
}

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
  expect(fileSuites.find(({ name }) => name === "long")?.repeats?.toSorted()).toEqual(
    reduced.filter((file) => suiteOf(file) === "unit").toSorted(),
  );
});

/** Folders for one subject, whose tests may have the name of a source elsewhere. */
const subjects = [
  // What each option or setting changes.
  /\/effects\//,
  // What holds over every protocol, and for every store.
  /^test\/contract\//,
  /^test\/stores\/contract\/(?:commands|\w+-store)\./,
  // What only the HTTP engine does.
  /^protoport\/gateway\/test\/http\/engine\//,
  // The suite for google.api.http on handlers of grpc-js.
  /\/transcoding\//,
];

/** Tests of something else than the source of their name. */
const homonyms = [
  // Not the workers of Citus, but processes of a server.
  "test/suites/long/command/workers.test.ts",
  // Not the header field, but keys in the database.
  "test/suites/long/stores/postgres/idempotency-key.test.ts",
  // A whole store on a failing PostgreSQL.
  "test/suites/long/stores/postgres/store-health.test.ts",
];

/** Returns the folder in src/ that corresponds to a test's, and the name of the source that it tests. */
function sourceOf(file: string): { folder: string; name: string } {
  const path = file.replace(/(^|\/)test\/(?:suites\/long\/)?/, "$1src/");
  return { folder: path.slice(0, -basename(path).length), name: basename(path, ".test.ts") };
}

/** Returns a source file's package, or its module in the gateway. */
function moduleOf(source: string): string {
  return /^protoport\/gateway\/src\/(?:[^/]+\/)?|^.*?src\//.exec(source)?.[0] ?? "";
}

test("a test named like a source file is in the matching folder", () => {
  const sources = Map.groupBy(globSync("{src,protoport/*/src}/**/*.ts", { cwd: projectFolder }), (source) =>
    basename(source, ".ts"),
  );
  const misplaced = testFiles.filter((file) => {
    const isOtherSuite = /\/suites\/(?!long\/)/.test(file);
    if (isOtherSuite || homonyms.includes(file) || subjects.some((subject) => subject.test(file))) return false;
    const { folder, name } = sourceOf(file);
    const named = (sources.get(name) ?? []).filter((source) => moduleOf(source) === moduleOf(`${folder}${name}.ts`));
    return named.length > 0 && !named.includes(`${folder}${name}.ts`);
  });
  expect(misplaced).toEqual([]);
  expect(homonyms.filter((file) => !testFiles.includes(file))).toEqual([]);
});

test.each(fileSuites)("the suite $name has test files", (suite) => {
  expect(filesOf(suite)).not.toEqual([]);
});

test.each(fileSuites.flatMap(({ repeats = [] }) => repeats))("the path %s, which a suite repeats, exists", (path) => {
  expect(path).toMatch(/(?:\/|\.test\.ts)$/);
  expect(existsSync(join(projectFolder, path))).toBe(true);
});

test.each(suites.filter((suite) => suite.kind === "program"))("the program of the suite $name exists", (suite) => {
  expect(suite.program).toMatch(/^(?:protoport\/[a-z-]+\/)?test\/suites\/[a-z0-9-]+\/run[a-z-]*\.ts$/);
  expect(existsSync(join(projectFolder, suite.program))).toBe(true);
});
