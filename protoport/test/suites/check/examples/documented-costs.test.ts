import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { heldRows } from "../../costs/held-rows.ts";
import { spentRows } from "../../costs/spent-rows.ts";
import { projectFolder } from "../../../../testing/src/process/child-program.ts";

// Compares protoport/SECURITY.md's tables with the costs that protoport/test/suites/costs measures.

const page = readFileSync(join(projectFolder, "protoport/SECURITY.md"), "utf8");

/** Returns the actions in the table with this header, whose rows have a bound and its actions, with their bounds. */
function tableBelow(head: string): Record<string, string> {
  const [, table = ""] = page.split(`${head}\n`);
  const lines = table.split("\n").slice(1);
  const end = lines.findIndex((line) => !line.startsWith("|"));
  const rows = lines.slice(0, end).map((line) => line.slice(2, -2).split(" | "));
  return Object.fromEntries(rows.flatMap(([atMost = "", all = ""]) => all.split("<br>").map((what) => [what, atMost])));
}

test.each([
  { head: "| held at most | what clients do |", rows: heldRows },
  { head: "| calls at most | what clients do |", rows: spentRows },
])("the table with the header $head lists exactly the measured costs", ({ head, rows }) => {
  expect(tableBelow(head)).toStrictEqual(Object.fromEntries(rows.map(({ what, atMost }) => [what, atMost])));
});
