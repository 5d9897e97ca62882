import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runOf } from "../../../../tools/suite.ts";
import { projectFolder, runProgram } from "@protoport/testing/process";
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
    { name: "several suites of test files share one vitest process", chosen: ["node-handler", "long"],
      want: [[...vitest, "--project", "node-handler", "--project", "long", "--maxWorkers=4"]] },
    { name: "suites in one process get the lowest of their worker limits", chosen: ["long", "clients"],
      want: [[...vitest, "--project", "long", "--project", "clients", "--maxWorkers=3"]] },
    { name: "vitest chooses the number of workers for a suite without a limit", chosen: ["load"],
      want: [[...vitest, "--project", "load"]] },
    { name: "a suite's preparation runs first", chosen: ["browser"],
      prepare: ["tsc -p protoport/test/suites/browser && tsc -p test/suites/browser"],
      want: [[...vitest, "--project", "browser", "--maxWorkers=2"]] },
    { name: "arguments are passed to vitest", chosen: ["load"], args: ["-t", "a row"],
      want: [[...vitest, "--project", "load", "-t", "a row"]] },
    { name: "arguments are passed to a suite's program", chosen: ["h2spec"], args: ["--seed", "7"],
      want: [[process.execPath, "protoport/gateway/test/suites/h2spec/run.ts", "--seed", "7"]] },
  ],
)("$name", ({ chosen, args = [], prepare = [], want }) => {
  const { preparations, commands } = runOf(chosen.flatMap(suiteNamed), args);
  expect({ preparations, commands }).toEqual({ preparations: prepare, commands: want });
});

test("npm run suite exits with 0 if a suite passes, else 1", async () => {
  const passing = await run("long", "--", "protoport/gateway/test/suites/long/transcoding/cases.test.ts");
  const failing = await run("unit", "--", "test/tools/there-is-none.test.ts");
  expect([passing.exitCode, failing.exitCode]).toEqual([0, 1]);
});
