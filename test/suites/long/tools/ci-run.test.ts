import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { createTempFolder, projectFolder, runProgram, type TempFolder } from "@protoport/testing/process";

// Runs .ci/run in a folder where npm and the other programs are scripts that behave as each test case requires.

interface FakeSuite {
  /** The report that it writes, if any. */
  readonly report?: { readonly numPassedTests: number; readonly numFailedTests: number };
  readonly exitCode?: number;
}

interface Case {
  readonly name: string;
  readonly suites: Readonly<Record<string, FakeSuite>>;
  /** The command line that fails. */
  readonly failing?: string;
  readonly lastLine: string;
  readonly failed?: string;
}

const passing = { report: { numPassedTests: 3, numFailedTests: 0 } };
/** How many checks count as one test each, including `npm ci` and the suite list. */
const checks = 11;

const npm = `#!/bin/sh
echo "$(basename "$0") $*" >>"$FAKES/calls"
[ "$(basename "$0") $*" = "$FAILING" ] && exit 1
case "$*" in
  "run --silent suite -- --of run") cat "$FAKES/list"; exit 0 ;;
  test) name=test ;;
  "run --silent suite -- "*) name=$5 ;;
  *) exit 0 ;;
esac
[ ! -e "$FAKES/$name.json" ] || cp "$FAKES/$name.json" "$TEST_REPORT"
exit "$(cat "$FAKES/$name.exit")"
`;

/** Copies .ci/run to a folder, and writes the programs that it calls. */
function prepareFolder(folder: TempFolder, suites: Case["suites"]): void {
  for (const name of ["run", "count-tests.mjs", "expected-skips"])
    cpSync(join(projectFolder, ".ci", name), folder.file(`.ci/${name}`), { recursive: true });
  mkdirSync(folder.file("bin"));
  for (const path of ["bin/npm", "bin/npx", ".ci/copy-protoport", ".ci/install-tools"])
    writeFileSync(folder.file(path), npm, { mode: 0o755 });
  const all: Case["suites"] = { test: passing, ...suites };
  for (const [name, { report, exitCode = 0 }] of Object.entries(all)) {
    if (report !== undefined) writeFileSync(folder.file(`${name}.json`), JSON.stringify(report));
    writeFileSync(folder.file(`${name}.exit`), String(exitCode));
  }
  const names = Object.keys(suites).filter((name) => name !== "test");
  writeFileSync(folder.file("list"), names.map((name) => `${name}\n`).join(""));
}

// oxfmt-ignore
const cases: readonly Case[] = [
  { name: "adds up the tests of all suites, and counts each check as one test", suites: { near: passing, far: passing },
    lastLine: `${checks + 9} passed, 0 failed, 0 skipped` },
  { name: "counts a failed test, and prints its suite",
    suites: { near: { report: { numPassedTests: 2, numFailedTests: 1 }, exitCode: 1 }, far: passing },
    lastLine: `${checks + 8} passed, 1 failed, 0 skipped`, failed: "near" },
  { name: "fails when a suite passes without a report", suites: { near: {}, far: passing },
    lastLine: `${checks + 6} passed, 1 failed, 0 skipped`, failed: "near" },
  { name: "fails when a suite fails after all its tests passed", suites: { near: { ...passing, exitCode: 1 } },
    lastLine: `${checks + 6} passed, 1 failed, 0 skipped`, failed: "near" },
  { name: "fails when npm test fails", suites: { test: { exitCode: 1 }, near: passing },
    lastLine: `${checks + 3} passed, 1 failed, 0 skipped`, failed: "test" },
  { name: "fails when no suite is listed", suites: {}, lastLine: `${checks - 1 + 3} passed, 1 failed, 0 skipped`,
    failed: "list of the longer suites" },
  { name: "fails when the suites cannot be listed", suites: { near: passing },
    failing: "npm run --silent suite -- --of run", lastLine: `${checks - 1 + 3} passed, 1 failed, 0 skipped`,
    failed: "list of the longer suites" },
  { name: "runs the rest when a check fails", suites: { near: passing }, failing: "npm run --silent format -- --check",
    lastLine: `${checks - 1 + 6} passed, 1 failed, 0 skipped`, failed: "format" },
  { name: "stops when npm ci fails", suites: { near: passing }, failing: "npm ci --no-audit --no-fund",
    lastLine: "0 passed, 1 failed, 0 skipped", failed: "npm ci" },
];

test.concurrent.each(cases)(".ci/run $name", async ({ suites, failing = "", lastLine, failed }) => {
  using folder = createTempFolder();
  prepareFolder(folder, suites);
  const { exitCode, stdout } = await runProgram("bash", [folder.file(".ci/run")], {
    folder: folder.path,
    environment: {
      PATH: [folder.file("bin"), process.env["PATH"]].join(delimiter),
      FAKES: folder.path,
      FAILING: failing,
    },
  });
  const lines = stdout.trimEnd().split("\n");
  expect({ exitCode, lastLine: lines.at(-1) }).toEqual({ exitCode: failed === undefined ? 0 : 1, lastLine });
  expect(lines.find((line) => line.startsWith("failed: "))).toBe(failed && `failed: ${failed}`);
  // The README's commands come first, and the suites last, in the list's order.
  const calls = readFileSync(folder.file("calls"), "utf8").trimEnd().split("\n");
  const isInstalled = failing !== "npm ci --no-audit --no-fund";
  expect(calls.slice(0, 2)).toEqual(["npm ci --no-audit --no-fund", "npm test"].slice(0, isInstalled ? 2 : 1));
});
