import { expect, test } from "vitest";
import { heldRows } from "../../costs/held-rows.ts";
import { spentRows } from "../../costs/spent-rows.ts";
import { readPage } from "../../../support/docs/page-blocks.ts";

// Compares protoport/SECURITY.md's tables with the costs that protoport/test/suites/costs measures.

type Cost = { readonly what: string; readonly atMost: string };
const page = readPage("protoport/SECURITY.md");

function tableBelow(head: string): readonly Cost[] {
  const [, table = ""] = page.split(`${head}\n`);
  const lines = table.split("\n").slice(1);
  const rows = lines.slice(0, lines.indexOf("")).map((line) => line.slice(2, -2).split(" | "));
  return rows.map(([atMost = "", what = ""]) => ({ atMost, what }));
}

const sizes: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 * 1024 };

function boundOf({ atMost }: Cost): { readonly value: number; readonly per: string } {
  const [, number, size = "", per = ""] = /^([\d.]+)(?: (\w+) (.+))?$/.exec(atMost) ?? [];
  return { value: Number(number) * (sizes[size] ?? 1), per };
}

function highest(rows: readonly Cost[]): ReadonlyMap<string, number> {
  const bounds = Map.groupBy(rows.map(boundOf), ({ per }) => per);
  return new Map(Array.from(bounds, ([per, all]) => [per, Math.max(...all.map(({ value }) => value))]));
}

test.each([
  { head: "| held at most | what clients do |", rows: heldRows },
  { head: "| calls at most | what clients do |", rows: spentRows },
])("the table with the header $head has measured costs, and the highest of each unit", ({ head, rows }) => {
  const measured = rows.map(({ what, atMost }) => ({ what, atMost }));
  const documented = tableBelow(head);
  expect([measured, highest(documented)]).toEqual([expect.arrayContaining([...documented]), highest(measured)]);
});
