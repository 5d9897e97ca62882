import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pages } from "../../protoport/test/support/docs/page-blocks.ts";
import { projectFolder } from "../../protoport/testing/src/process/child-program.ts";

const columnsMax = 120;

/** Returns the prose lines that are too wide. Tables, code and pictures may be wider. */
function wideLines(page: string): string[] {
  const text = readFileSync(join(projectFolder, page), "utf8").replaceAll(/^```[^]*?^```$/gm, "");
  return text
    .split("\n")
    .filter((line) => !/^(?:\||!\[)/.test(line))
    .filter((line) => line.replaceAll(/`[^`]{80,}`/g, "").length > columnsMax);
}

const texts = [
  ...pages,
  "protoport/SECURITY.md",
  "CONTRIBUTING.md",
  "RELEASING.md",
  "CHANGELOG.md",
  "deploy/README.md",
  "bench/README.md",
];

test.each(texts)("no prose line in %s is wider than 120 columns", (page) => {
  expect(wideLines(page)).toEqual([]);
});

// A reader's Node.js may be version 20, which cannot run TypeScript. npx runs the Node.js of the project.
test.each(texts)("%s runs TypeScript files with npx node", (page) => {
  const text = readFileSync(join(projectFolder, page), "utf8");
  expect(text.match(/(?<!npx )\bnode (?:src|tools|test|bench|examples)\/\S*/g)).toBeNull();
});

const readmes = globSync("protoport/*/README.md", { cwd: projectFolder });

test.each(readmes)("%s has at most 600 words", (page) => {
  expect(readFileSync(join(projectFolder, page), "utf8").split(/\s+/).length).toBeLessThanOrEqual(600);
});

test("README.md has at most 120 lines", () => {
  const lines = readFileSync(join(projectFolder, "README.md"), "utf8").trimEnd().split("\n");
  expect(lines.length).toBeLessThanOrEqual(120);
});
