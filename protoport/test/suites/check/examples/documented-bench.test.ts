import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bookScenarios } from "../../../../bench/book-scenarios.ts";
import { libraryScenarios } from "../../../../bench/library-scenarios.ts";
import { messageScenarios } from "../../../../bench/message-scenarios.ts";
import { parseOptions } from "../../../../bench/options.ts";
import { projectFolder } from "@protoport/testing/process";
import { blocksRunBy } from "../../../support/docs/page-blocks.ts";

// A measurement takes minutes and requires an idle machine, so the commands in protoport/docs/explanation/performance.md are only
// parsed. Parsing throws for an unknown option.

const lines = blocksRunBy("protoport/test/suites/check/examples/documented-bench.test.ts").flatMap(({ text }) =>
  text.split("\n"),
);
const commands = lines.map((line) => line.replace(/\s+#.*$/, ""));
const isOfBench = (command: string): boolean => command.startsWith("npm run bench");
const known = [...messageScenarios, ...libraryScenarios, ...bookScenarios].map(({ name }) => name);

test.each(commands.filter(isOfBench))('the bench accepts the arguments in "%s"', (command) => {
  const { only = "" } = parseOptions(command.split(" ").slice(4));
  expect(known).toEqual(expect.arrayContaining(only.split(",").filter((name) => name !== "")));
});

test.each(commands.filter((command) => !isOfBench(command)))("the packages that %s installs exist", (command) => {
  const [, folder = "none"] = /^npm ci --prefix (\S+)$/.exec(command) ?? [];
  expect(existsSync(join(projectFolder, folder, "package-lock.json"))).toBe(true);
});
