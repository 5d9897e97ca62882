import { expect, test } from "vitest";
import { resultRow, resultsPage } from "../../tools/write-results.ts";
import { readPage } from "../support/docs/page-blocks.ts";

const rowOf = (script: string, numPassedTests: number): string =>
  resultRow(script, { numPassedTests, numFailedTests: 2, detail: "as v1" }, "2026-01-02", "abc");

test("a result has its suite, counts, day and commit", () => {
  expect(rowOf("test:h2spec", 1234)).toMatch(
    /^\| `test:h2spec` \| h2spec.* \(as v1\) \| 1,234 \| 2 \| 2026-01-02 \| abc \|$/,
  );
});

test("what has no report keeps its row, and what has one gets another", () => {
  const before = resultsPage("", new Map(["test:conformance", "test:h2spec"].map((name) => [name, rowOf(name, 5)])));
  const page = resultsPage(before, new Map([["test:h2spec", rowOf("test:h2spec", 6)]]));
  const rows = page.split("\n").filter((line) => line.startsWith("| `"));
  expect(rows).toEqual([rowOf("test:conformance", 5), rowOf("test:h2spec", 6)]);
});

test("docs/results.md is as the command writes it", () => {
  expect(readPage("docs/results.md")).toBe(resultsPage(readPage("docs/results.md"), new Map()));
});
