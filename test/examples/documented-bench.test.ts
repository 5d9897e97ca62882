import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder, runProgram } from "../support/process/child-program.ts";
import { blocksRunBy } from "../support/docs/page-blocks.ts";

// A measurement takes minutes and wants a quiet machine. So each command of docs/performance.md is run with
// `--help` behind it: options that the bench does not know end it, names that it has not are not in what it says.

const lines = blocksRunBy("test/examples/documented-bench.test.ts").flatMap(({ text }) => text.split("\n"));
const commands = lines.map((line) => line.replace(/\s+#.*$/, ""));

const isOfBench = (command: string): boolean => command.startsWith("npm run bench");

test.each(commands.filter(isOfBench))("the bench understands the words of %s", async (command) => {
  const words = command.split(" ").slice(4);
  const { exitCode, stdout, stderr } = await runProgram(process.execPath, ["bench/main.ts", ...words, "--help"]);
  expect(exitCode, stderr).toBe(0);
  const names = words[words.indexOf("--only") + 1]?.split(",") ?? [];
  const known = /NAMES: (.*)/.exec(stdout)?.[1]?.split(",") ?? [];
  if (words.includes("--only")) expect(known).toEqual(expect.arrayContaining(names));
});

test.each(commands.filter((command) => !isOfBench(command)))("there are packages for %s to install", (command) => {
  const [, folder = "none"] = /^npm ci --prefix (\S+)$/.exec(command) ?? [];
  expect(existsSync(join(projectFolder, folder, "package-lock.json"))).toBe(true);
});
