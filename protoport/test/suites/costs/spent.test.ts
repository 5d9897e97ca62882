import { expect, test } from "vitest";
import { type MeasuredServer, startMeasuredServer } from "../../support/costs/measured-server.ts";
import { leastOf } from "@protoport/testing/process";
import { ordinaryCall, spentRows, type SpentRow } from "./spent-rows.ts";

const turns = 5;
const warmUpTurns = 3;
const ordinaryCalls = 1000;

/** A test case takes seconds, or minutes when all measurements are repeated five times on a busy machine. */
const timeout = 300_000;

test.for(spentRows)("a server's CPU time for $what stays within its limit", { timeout }, async (row) => {
  await using server = await startMeasuredServer();
  const most = Number(row.atMost);
  const ratioWith = (n: number): Promise<number> => leastOf(() => ratioOf(server, row, n), most);
  for (const n of [row.n, 4 * row.n]) await ratiosOf(server, row, n, warmUpTurns);
  const [few, many] = [await ratioWith(row.n), await ratioWith(4 * row.n)];
  console.log(few.toFixed(2).padStart(9), many.toFixed(2).padStart(9), row.atMost.padStart(6), row.what);
  expect.soft(few, `calls for each of ${row.n}`).toBeLessThan(most);
  expect.soft(many, `calls for each of ${4 * row.n}`).toBeLessThan(most);
});

/** Returns the action's cost when it runs `n` times, as a multiple of an ordinary call's cost in the same turn. */
async function ratioOf(server: MeasuredServer, row: SpentRow, n: number): Promise<number> {
  return median(await ratiosOf(server, row, n, turns));
}

async function ratiosOf(server: MeasuredServer, { run }: SpentRow, n: number, count: number): Promise<number[]> {
  const ratios: number[] = [];
  while (ratios.length < count) {
    const call = await spentOn(server, ordinaryCall, ordinaryCalls);
    ratios.push((await spentOn(server, run, n)) / call);
  }
  return ratios;
}

async function spentOn(server: MeasuredServer, run: SpentRow["run"], n: number): Promise<number> {
  const before = await server.ask("spent");
  await run(server, n);
  return ((await server.ask("spent")) - before) / n;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
