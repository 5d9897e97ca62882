import { describe, expect, test } from "vitest";
import { type MeasuredServer, startMeasuredServer } from "../support/costs/measured-server.ts";
import { ordinaryCall, spentRows, type SpentRow } from "./spent-rows.ts";

const turns = 5;
const ordinaryCalls = 1000;

describe("what is spent, with so much done and with four times as much, is as SECURITY.md says for", () => {
  test.for(spentRows)("$what", { timeout: 120_000 }, async (row) => {
    await using server = await startMeasuredServer();
    for (let warm = 0; warm < 3; warm++) await ratiosOf(server, row);
    const ratios: { readonly few: number; readonly many: number }[] = [];
    while (ratios.length < turns) ratios.push(await ratiosOf(server, row));
    const [few, many] = [median(ratios.map((each) => each.few)), median(ratios.map((each) => each.many))];
    console.log(few.toFixed(2).padStart(9), many.toFixed(2).padStart(9), row.atMost.padStart(6), row.what);
    expect.soft(few, `calls for each of ${row.n}`).toBeLessThan(Number(row.atMost));
    expect.soft(many, `calls for each of ${4 * row.n}`).toBeLessThan(Number(row.atMost));
  });
});

/** What one of it costs, as a multiple of what an ordinary call costs in the same turn. */
async function ratiosOf(server: MeasuredServer, { run, n }: SpentRow): Promise<{ few: number; many: number }> {
  const call = await spentOn(server, ordinaryCall, ordinaryCalls);
  const few = await spentOn(server, run, n);
  const many = await spentOn(server, run, 4 * n);
  return { few: few / call, many: many / call };
}

/** Microseconds of CPU for each of it. */
async function spentOn(server: MeasuredServer, run: SpentRow["run"], n: number): Promise<number> {
  const before = await server.ask("spent");
  await run(server, n);
  return ((await server.ask("spent")) - before) / n;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
