import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { heldRows } from "../suites/costs/held-rows.ts";
import { spentRows } from "../suites/costs/spent-rows.ts";
import { projectFolder } from "../../testing/src/process/child-program.ts";

// Compares protoport/SECURITY.md's tables with the costs that protoport/test/suites/costs measures.

const page = readFileSync(join(projectFolder, "protoport/SECURITY.md"), "utf8");

/** Returns the rows in the table with this header, as cells. */
function tableBelow(head: string): string[][] {
  const [, table = ""] = page.split(`${head}\n`);
  const lines = table.split("\n").slice(1);
  const end = lines.findIndex((line) => !line.startsWith("|"));
  return lines.slice(0, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

test.each([
  { head: "| what clients do | held at most |", rows: heldRows },
  { head: "| what clients do | calls at most |", rows: spentRows },
])("the table with the header $head lists exactly the measured costs", ({ head, rows }) => {
  expect(tableBelow(head)).toStrictEqual(rows.map(({ what, atMost }) => [what, atMost]));
});
