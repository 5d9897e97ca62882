import { describe, expect, test } from "vitest";
import { readPage } from "./page-blocks.ts";
import { cellsOf, missingFiles, missingTests, referencesIn } from "./references.ts";

/** Declares tests that a page's table of promises, below a header, names existing tests. */
export function checkPromises(page: string, header: string): void {
  const [, table = ""] = readPage(page).split(`| ${header} |\n`);
  const lines = table.split("\n").slice(1);
  const promises = lines.slice(0, lines.indexOf("")).map((line) => {
    const [promise = "", tests = ""] = cellsOf(line);
    return { promise, tests: referencesIn(page, tests) };
  });

  test(`the table of promises in ${page} has at least five rows`, () => expect(promises.length).toBeGreaterThan(4));

  describe.each(promises)('the promise "$promise"', ({ tests }) => {
    test("names test files that exist", () => {
      expect(tests).not.toEqual([]);
      expect(tests.map(({ titles }) => titles.length)).not.toContain(0);
      expect(missingFiles(tests)).toEqual([]);
    });

    test("names tests that these files have", () => expect(missingTests(tests)).toEqual([]));
  });
}
