/**
 * What a locked plant costs all others: 200 deletions a second over REST, by turns with and without a transaction that
 * keeps another plant locked, for which a caller asks once a second.
 * `npx node bench/storage/locked.ts [--seconds 10] [--turns 4]`
 */
import { setInterval as every } from "node:timers/promises";
import { Client } from "pg";
import { configOf, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { percentilesOf } from "../load/load.ts";
import { numberFlags } from "../options.ts";
import { sendOpenLoad } from "../overload/open-load.ts";
import { benchToken } from "../servers/plants.ts";
import { median } from "../summary.ts";
import { createPlants } from "./stores.ts";
import { startServer } from "./subject.ts";

const { seconds, turns } = numberFlags({ seconds: 10, turns: 4 });

/** Deletions a second of plants that nobody keeps locked. */
const othersPerS = 200;

/** Milliseconds between two calls for the locked plant. */
const lockedEveryMs = 1_000;

const lockedPlant = 1;
const plants = 1_000_000;

// The disk counts here.
await using postgres = await startPostgres([], { onDisk: true });
const url = await createPlants(postgres, plants);
await using server = await startServer("postgres", { file: "", url, plants });

let nextPlant = lockedPlant + 1;
const free: Seen[] = [];
const beside: Seen[] = [];
// The first load warms up.
await deleteOthers();
for (let turn = 0; turn < turns; turn++) {
  const isOdd = turn % 2 === 1;
  if (isOdd) free.push(await deleteOthers());
  beside.push(await deleteBesideLock());
  if (!isOdd) free.push(await deleteOthers());
}

console.log(`${othersPerS} deletions a second over REST, ${turns} turns of ${seconds} s; medians in ms\n`);
console.log("                  asked   failed      p50      p99");
show("nothing locked", free);
show("a plant locked", beside);
const times = beside.map(({ p99 }, turn) => p99 / (free[turn]?.p99 ?? Number.NaN));
console.log(`\np99 ${median(times).toFixed(2)} x, turn by turn from ${times.map((one) => one.toFixed(2)).join(", ")}`);

/** What came of a turn, in milliseconds. */
interface Seen {
  readonly asked: number;
  readonly failed: number;
  readonly p50: number;
  readonly p99: number;
}

async function deleteOthers(): Promise<Seen> {
  const firstPlant = nextPlant;
  nextPlant += Math.ceil(othersPerS * seconds * 1.5);
  const order = { protocol: "rest", port: server.port, callsPerS: othersPerS, durationS: seconds, firstPlant } as const;
  const { answers } = await sendOpenLoad(order);
  const deleted = answers.filter(({ kind }) => kind === "deleted");
  const latency = percentilesOf(Float64Array.from(deleted, ({ latencyMs }) => latencyMs));
  return { asked: answers.length, failed: answers.length - deleted.length, ...latency };
}

/** Deletes others while a plant is locked and asked for, all the time. */
async function deleteBesideLock(): Promise<Seen> {
  const locking = new Client(configOf(url));
  await locking.connect();
  await locking.query(`BEGIN; SELECT FROM plants WHERE id = ${lockedPlant} FOR UPDATE`);
  const over = new AbortController();
  const asking = askForLocked(over.signal);
  try {
    return await deleteOthers();
  } finally {
    over.abort();
    await asking;
    await locking.end();
  }
}

async function askForLocked(over: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${benchToken}` };
  const asked: Promise<Response>[] = [];
  const ask = (): void => {
    asked.push(fetch(`http://127.0.0.1:${server.port}/plants/${lockedPlant}`, { method: "DELETE", headers }));
  };
  ask();
  try {
    for await (const _ of every(lockedEveryMs, undefined, { signal: over })) ask();
  } catch (reason) {
    if (!over.aborted) throw reason;
  }
  const answers = await Promise.all(asked);
  if (answers.some(({ ok }) => ok)) throw new Error("the plant was not locked all the time");
}

function show(name: string, seen: readonly Seen[]): void {
  const cells = [
    sum(seen.map(({ asked }) => asked)),
    sum(seen.map(({ failed }) => failed)),
    median(seen.map(({ p50 }) => p50)).toFixed(1),
    median(seen.map(({ p99 }) => p99)).toFixed(1),
  ];
  console.log(name.padEnd(14) + cells.map((cell) => String(cell).padStart(9)).join(""));
}

function sum(figures: readonly number[]): number {
  return figures.reduce((all, one) => all + one, 0);
}
