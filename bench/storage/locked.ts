/**
 * Measures how a locked plant affects the deletion of other plants. The program sends 200 deletions per second over
 * REST, in turns with and without a transaction that locks another plant. A caller tries to delete the locked plant
 * once a second. `npx node bench/storage/locked.ts [--seconds 10] [--turns 4]`
 */
import { setInterval as every } from "node:timers/promises";
import { Client } from "pg";
import { configOf, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { percentilesOf } from "../../protoport/bench/load/load.ts";
import { numberFlags } from "../../protoport/bench/options.ts";
import { sendOpenLoad } from "../overload/open-load.ts";
import { benchToken } from "../servers/plants.ts";
import { median } from "../../protoport/bench/summary.ts";
import { createPlants } from "./stores.ts";
import { startServer } from "./subject.ts";

const { seconds, turns } = numberFlags({ seconds: 10, turns: 4 });

/** Number of deletions per second for plants that are not locked. */
const othersPerS = 200;

/** Milliseconds between two deletions of the locked plant. */
const lockedEveryMs = 1_000;

const lockedPlant = 1;
const plants = 1_000_000;

// The database is on disk, because the disk's speed is part of the result.
await using postgres = await startPostgres([], { onDisk: true });
const url = await createPlants(postgres, plants);
await using server = await startServer("postgres", { file: "", url, plants });

let nextPlant = lockedPlant + 1;
const free: LoadResult[] = [];
const locked: LoadResult[] = [];
// The first load is a warm-up.
await deleteOthers();
for (let turn = 0; turn < turns; turn++) {
  const isOdd = turn % 2 === 1;
  if (isOdd) free.push(await deleteOthers());
  locked.push(await deleteDuringLock());
  if (!isOdd) free.push(await deleteOthers());
}

console.log(`${othersPerS} deletions a second over REST, ${turns} turns of ${seconds} s; medians in ms\n`);
console.log("               requests   failed      p50      p99");
show("nothing locked", free);
show("a plant locked", locked);
const times = locked.map(({ p99 }, turn) => p99 / (free[turn]?.p99 ?? Number.NaN));
console.log(`\np99 ${median(times).toFixed(2)} x, turn by turn from ${times.map((one) => one.toFixed(2)).join(", ")}`);

/** A turn's result. Latencies are in ms. */
interface LoadResult {
  readonly requests: number;
  readonly failed: number;
  readonly p50: number;
  readonly p99: number;
}

async function deleteOthers(): Promise<LoadResult> {
  const firstPlant = nextPlant;
  nextPlant += Math.ceil(othersPerS * seconds * 1.5);
  const order = { protocol: "rest", port: server.port, callsPerS: othersPerS, durationS: seconds, firstPlant } as const;
  const { responses } = await sendOpenLoad(order);
  const deleted = responses.filter(({ kind }) => kind === "deleted");
  const latency = percentilesOf(Float64Array.from(deleted, ({ latencyMs }) => latencyMs));
  return { requests: responses.length, failed: responses.length - deleted.length, ...latency };
}

/** Deletes other plants while a plant is locked and a caller tries to delete the locked plant. */
async function deleteDuringLock(): Promise<LoadResult> {
  const locking = new Client(configOf(url));
  await locking.connect();
  await locking.query(`BEGIN; SELECT FROM plants WHERE id = ${lockedPlant} FOR UPDATE`);
  const turnEnd = new AbortController();
  const calls = callForLocked(turnEnd.signal);
  try {
    return await deleteOthers();
  } finally {
    turnEnd.abort();
    await calls;
    await locking.end();
  }
}

async function callForLocked(turnEnd: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${benchToken}` };
  const calls: Promise<Response>[] = [];
  const call = (): void => {
    calls.push(fetch(`http://127.0.0.1:${server.port}/plants/${lockedPlant}`, { method: "DELETE", headers }));
  };
  call();
  try {
    for await (const _ of every(lockedEveryMs, undefined, { signal: turnEnd })) call();
  } catch (reason) {
    if (!turnEnd.aborted) throw reason;
  }
  const responses = await Promise.all(calls);
  if (responses.some(({ ok }) => ok)) throw new Error("the plant was not locked for the whole turn");
}

function show(name: string, results: readonly LoadResult[]): void {
  const cells = [
    sum(results.map(({ requests }) => requests)),
    sum(results.map(({ failed }) => failed)),
    median(results.map(({ p50 }) => p50)).toFixed(1),
    median(results.map(({ p99 }) => p99)).toFixed(1),
  ];
  console.log(name.padEnd(14) + cells.map((cell) => String(cell).padStart(9)).join(""));
}

function sum(figures: readonly number[]): number {
  return figures.reduce((all, one) => all + one, 0);
}
