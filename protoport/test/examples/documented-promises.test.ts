import { describe, expect, test } from "vitest";
import { readPage } from "../support/docs/page-blocks.ts";
import { cellsOf, missingFiles, missingTests, referencesIn } from "../support/docs/references.ts";

const [, table = ""] = readPage("protoport/SECURITY.md").split("| the plant server promises | tests |\n");
const lines = table.split("\n").slice(1);
const promises = lines.slice(0, lines.indexOf("")).map((line) => {
  const [promise = "", tests = ""] = cellsOf(line);
  return { promise, tests: referencesIn("protoport/SECURITY.md", tests, /"([^"]+)"/g) };
});

test("the table of promises in protoport/SECURITY.md has at least ten rows", () => {
  expect(promises.length).toBeGreaterThan(9);
});

describe.each(promises)('the promise "$promise"', ({ tests }) => {
  test("names test files that exist", () => {
    expect(tests).not.toEqual([]);
    expect(tests.map(({ names }) => names.length)).not.toContain(0);
    expect(missingFiles(tests)).toEqual([]);
  });

  test("names tests that these files have", () => {
    expect(missingTests(tests)).toEqual([]);
  });
});
