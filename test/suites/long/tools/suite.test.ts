import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeSuite, runOf } from "../../../../tools/suite.ts";
import { projectFolder, runProgram } from "../../../../protoport/testing/src/process/child-program.ts";
import { createTempFolder } from "../../../../protoport/testing/src/process/temp-folder.ts";
import { type Suite } from "../../../../protoport/testing/src/suite.ts";
import { suites } from "../../suites.ts";

const run = (...words: string[]) => runProgram(process.execPath, [join(projectFolder, "tools/suite.ts"), ...words]);

test(".ci/nightly runs all nightly suites, and only listed suites", () => {
  const script = readFileSync(join(projectFolder, ".ci/nightly"), "utf8");
  const calls = /(?:night_(?:suite|on_node) "[^"]*"(?: \\\n)? +|suite -- )([a-z][a-z0-9-]*)/g;
  const named = [...script.matchAll(calls)].map(([, name]) => name);
  const nightly = suites.filter(({ occasion }) => occasion === "nightly").map(({ name }) => name);
  expect(named).toEqual(expect.arrayContaining(nightly));
  expect(suites.map(({ name }) => name)).toEqual(expect.arrayContaining(named));
});

const suiteNamed = (name: string) => suites.filter((suite) => suite.name === name);
const vitest = [process.execPath, "node_modules/vitest/vitest.mjs", "run"];

test.each(
  // oxfmt-ignore
  [
    { name: "several suites of test files share one vitest process", chosen: ["unit", "node-handler"],
      want: [[...vitest, "--project", "unit", "--project", "node-handler", "--maxWorkers=4"]] },
    { name: "suites in one process get the lowest of their worker limits", chosen: ["long", "crash"],
      want: [[...vitest, "--project", "long", "--project", "crash", "--maxWorkers=3"]] },
    { name: "vitest chooses the number of workers for a suite without a limit", chosen: ["load"],
      want: [[...vitest, "--project", "load"]] },
    { name: "a suite's preparation runs first", chosen: ["browser"],
      prepare: ["tsc -p protoport/test/suites/browser && tsc -p test/suites/browser"],
      want: [[...vitest, "--project", "browser"]] },
    { name: "arguments are passed to vitest", chosen: ["load"], args: ["-t", "a row"],
      want: [[...vitest, "--project", "load", "-t", "a row"]] },
    { name: "arguments are passed to a suite's program", chosen: ["h2spec"], args: ["--seed", "7"],
      want: [[process.execPath, "protoport/gateway/test/suites/h2spec/run.ts", "--seed", "7"]] },
  ],
)("$name", ({ chosen, args = [], prepare = [], want }) => {
  const { preparations, commands } = runOf(chosen.flatMap(suiteNamed), args);
  expect({ preparations, commands }).toEqual({ preparations: prepare, commands: want });
});

test("npm run suite lists all suites", async () => {
  const { exitCode, stdout } = await run();
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `${suites.map(describeSuite).join("\n")}\n` });
});

test("describeSuite returns a suite's purpose, requirements and reason", () => {
  const suite: Suite = {
    kind: "program",
    name: "seeds",
    about: "seeds of many kinds",
    occasion: "nightly",
    whySeparate: "takes a night",
    program: "test/seeds.ts",
    needs: ["go", "curl"],
  };
  const [first = "", second = ""] = describeSuite(suite).split("\n");
  expect(first).toMatch(/^seeds {10,}seeds of many kinds$/);
  expect(second.trim()).toBe(".ci/nightly; takes a night; needs go, curl");
  expect(first.indexOf("seeds of")).toBe(second.indexOf(".ci"));
});

test('npm run suite -- --of test prints "unit"', async () => {
  const { exitCode, stdout } = await run("--of", "test");
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "unit\n" });
});

test("npm run suite -- --missing prints requirements that are not installed", async () => {
  using folder = createTempFolder();
  symlinkSync("/bin/sh", folder.file("sh"));
  writeFileSync(folder.file("prometheus"), "#!/bin/sh\n", { mode: 0o755 });
  const words = [join(projectFolder, "tools/suite.ts"), "--missing", "prometheus", "deploy", "h2spec"];
  const { stdout } = await runProgram(process.execPath, words, { environment: { PATH: folder.path } });
  const lines = stdout.split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      "site go https://go.dev/dl",
      "debian strace",
      expect.stringMatching(/^go sigs\.k8s\.io\/kustomize\/.*@v/),
    ]),
  );
  expect(lines).not.toContain("debian prometheus");
});

test.each([
  ["a misspelled suite", ["postgers"], 'unknown suite "postgers"; "npm run suite" lists the suites'],
  ["a misspelled second suite", ["load", "crahs"], 'unknown suite "crahs"; "npm run suite" lists the suites'],
  [
    "a missing suite name",
    ["--", "test/suites/check/deploy.test.ts"],
    'the name of a suite is missing; "npm run suite" lists the suites',
  ],
  ["an unknown value of --of", ["--of", "dawn"], '--of must be followed by test, run or nightly, got "dawn"'],
])("npm run suite rejects %s and runs no suite", async (_name, words, message) => {
  expect(await run(...words)).toEqual({ exitCode: 2, stdout: "", stderr: `${message}\n` });
});

test("npm run suite exits with 0 if a suite passes, else 1", async () => {
  const passing = await run("long", "--", "test/suites/long/tools/watchdog.test.ts");
  expect({ exitCode: passing.exitCode, passed: passing.stdout.includes("1 passed") }).toEqual({
    exitCode: 0,
    passed: true,
  });
  const failing = await run("unit", "--", "test/tools/there-is-none.test.ts");
  expect(failing.exitCode).toBe(1);
});
