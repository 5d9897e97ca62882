import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../../testing/src/process/child-program.ts";

const maxColumns = 120;
const maxFrontPageLines = 120;

const read = (page: string): string => readFileSync(join(projectFolder, page), "utf8");

/** Returns the prose lines that are too wide. Tables, code and pictures may be wider. */
function wideLines(page: string): string[] {
  const text = read(page).replaceAll(/^```[^]*?^```$/gm, "");
  return text
    .split("\n")
    .filter((line) => !/^(?:\||!\[)/.test(line))
    .filter((line) => line.replaceAll(/`[^`]{80,}`/g, "").length > maxColumns);
}

/** Declares tests of the widths and commands in pages, and of the length of a front page. */
export function checkProse(pages: readonly string[], frontPage: string): void {
  test.each(pages)("no prose line in %s is wider than 120 columns", (page) => {
    expect(wideLines(page)).toEqual([]);
  });

  // A reader's Node.js may be version 20, which cannot run TypeScript. npx runs the Node.js of the project.
  test.each(pages)("%s runs TypeScript files with npx node", (page) => {
    expect(read(page).match(/(?<!npx )\bnode (?:src|tools|test|bench|examples)\/\S*/g)).toBeNull();
  });

  test(`${frontPage} has at most 120 lines`, () => {
    expect(read(frontPage).trimEnd().split("\n").length).toBeLessThanOrEqual(maxFrontPageLines);
  });
}
