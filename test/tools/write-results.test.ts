import { expect, test } from "vitest";
import { resultsPage } from "../../tools/write-results.ts";
import { readPage } from "../../protoport/test/support/docs/page-blocks.ts";

const page = readPage("docs/reference/results.md");

function rowOf(suite: string, text: string): string | undefined {
  return text.split("\n").find((line) => line.startsWith(`| \`${suite}\` |`));
}

function pageWith(numPassedTests: number, detail: string): string {
  const report = { numPassedTests, numFailedTests: 2, detail };
  const reportOf = (suite: string) => (suite === "h2spec" ? { report, day: "2026-01-02" } : undefined);
  return resultsPage(page, reportOf, "abc");
}

test("a new result replaces its suite's counts, detail, day and commit", () => {
  expect(rowOf("h2spec", pageWith(1234, "as v1"))).toMatch(
    /^\| `h2spec` \| h2spec, .* Go's HPACK \(as v1\) \| 1,234 \| 2 \| 2026-01-02 \| abc \|$/,
  );
});

test("a new result changes nothing else on the page", () => {
  const without = (text: string): string => text.replace(rowOf("h2spec", text) ?? "", "");
  expect(without(pageWith(5, "v2"))).toBe(without(page));
});

test("each suite's result on the page can be updated", () => {
  const rows = page.split("\n").filter((line) => line.startsWith("| `"));
  const report = { numPassedTests: 7, numFailedTests: 0 };
  const written = resultsPage(page, () => ({ report, day: "2026-01-02" }), "abc");
  expect(written.match(/ \| 7 \| 0 \| 2026-01-02 \| abc \|$/gm)).toHaveLength(rows.length);
});
