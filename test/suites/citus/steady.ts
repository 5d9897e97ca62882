import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { dropOldRecords } from "../../../src/stores/postgres/all-plants/retention.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import type { DeleteCall } from "../../../src/service/plant-store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { runSql } from "../../support/plants/postgres-server.ts";
import { createTempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";
import { startCitus } from "./citus-cluster.ts";
import { openCitusSession } from "./open-session.ts";

// `node test/suites/citus/steady.ts [--seconds 600] [--day 20] [--keys]` measures whether a store grows if callers
// delete as fast as they can while expired records are dropped. libfaketime sets the servers' clock to the next day
// every `--day` seconds, and records are kept for three days. Prints each day's counts, and fails if a day ends with
// more records than the last five days have: three days, the current one, and the one that is being dropped.

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    day: { type: "string", default: "20" },
    keys: { type: "boolean", default: false },
  },
});
const days = Math.floor(Number(values.seconds) / Number(values.day));
if (days < 6) throw new RangeError("records are judged from the sixth day on: give more seconds, or shorter days");
const keptMs = 3 * 24 * 3_600_000;
const callers = 256;
/** How many plants are added when fewer remain. */
const supply = 100_000;
const lookIntervalMs = 500;
/** Maximum number of records that are dropped in a transaction. The store itself drops fewer on Citus. */
const maxSlice = 20_000;
const refusedPauseMs = 100;
using folder = createTempFolder();
chmodSync(folder.path, 0o755);
jumpTo(0);
const preload = execFileSync("faketime", ["-f", "+0", "printenv", "LD_PRELOAD"], { encoding: "utf8" });
// This process was started without it.
Object.assign(process.env, {
  LD_PRELOAD: preload.trim(),
  FAKETIME_TIMESTAMP_FILE: folder.file("clock"),
  FAKETIME_CACHE_DURATION: "1",
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
});
await using cluster = await startCitus();
const url = await cluster.createSchema(32);
await migratePostgres(url);
const store = await openPostgresStore({ url, deletionsKeptMs: keptMs });
const { session, tables } = await openCitusSession(url);
const seen = { plants: 0, asked: 0, deleted: 0, refused: 0, dropped: 0, droppingMs: 0, locked: 0 };
const refusals = new Map<string, number>();
const over = new AbortController();
await addPlants();
const working = [supplyPlants(), dropOld(), ...Array.from({ length: callers }, keepDeleting)];
process.stdout.write("day  deletions/s  refused  dropped/s while dropping  MB of records  MB of plants\n");
const deletedBy: number[] = [];
let mostBehind = 0;
for (let day = 1; day <= days; day++) {
  const before = { ...seen };
  await Promise.race([sleep(Number(values.day) * 1_000), Promise.all(working)]);
  deletedBy.push(seen.deleted);
  // A running call counts as if its record was written.
  mostBehind = Math.max(mostBehind, (await countRecords()) - (seen.asked - (deletedBy.at(-6) ?? 0)));
  const dropped = seen.dropped - before.dropped;
  const cells = [
    (seen.deleted - before.deleted) / Number(values.day),
    seen.refused - before.refused,
    dropped === 0 ? 0 : dropped / ((seen.droppingMs - before.droppingMs) / 1_000),
    (await bytesOf("deletions")) / 1e6,
    (await bytesOf("plants")) / 1e6,
  ].map((cell, i) => cell.toFixed(0).padStart([13, 9, 26, 15, 14][i] ?? 0));
  process.stdout.write(`${String(day).padStart(3)}${cells.join("")}\n`);
  jumpTo(day);
}
over.abort();
await Promise.all(working);
await session.close();
await store.close();
process.stdout.write(
  `${seen.deleted} deleted, ${seen.dropped} dropped, ${seen.locked} times later for a lock; at most ${mostBehind} records ` +
    `more than the last five days have made; refused: ${JSON.stringify(Object.fromEntries(refusals))}\n`,
);
if (mostBehind > 0) process.exitCode = 1;

function jumpTo(day: number): void {
  writeFileSync(folder.file("clock"), `+${day}d\n`);
}

async function keepDeleting(): Promise<void> {
  while (!over.signal.aborted) {
    if (seen.asked === seen.plants) {
      await sleep(10);
      continue;
    }
    const id = BigInt(++seen.asked);
    const call = deleteCall(values.keys ? { idempotencyKey: `key-${id}` } : {});
    if (!(await deleteWithRetries(id, call))) throw new Error(`plant ${id} was not there`);
    seen.deleted++;
  }
}

/** Returns false if the plant was missing although no earlier attempt had an unknown outcome. */
async function deleteWithRetries(id: bigint, call: DeleteCall): Promise<boolean> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      return (await store.delete(id, call)) || !isFirst;
    } catch (fault) {
      const reason = fault instanceof Error ? fault.message : String(fault);
      refusals.set(reason, (refusals.get(reason) ?? 0) + 1);
      seen.refused++;
    }
    await sleep(refusedPauseMs);
  }
}

async function addPlants(): Promise<void> {
  const [first, last] = [seen.plants + 1, seen.plants + supply];
  await runSql(url, `INSERT INTO plants SELECT unnest(ARRAY(SELECT generate_series(${first}, ${last})::bigint))`);
  seen.plants = last;
}

async function supplyPlants(): Promise<void> {
  while (!over.signal.aborted) {
    if (seen.plants - seen.asked < supply) await addPlants();
    await sleep(lookIntervalMs / 10);
  }
}

/** Runs the store's upkeep every ten minutes. */
async function dropOld(): Promise<void> {
  while (!over.signal.aborted) {
    const begunMs = performance.now();
    const before = seen.dropped;
    try {
      for (let isMore = true; isMore && !over.signal.aborted;) {
        const dropped = await dropOldRecords(session, tables.schema, keptMs, { max: maxSlice });
        seen.dropped += dropped.count;
        ({ isMore } = dropped);
      }
    } catch {
      seen.locked++;
    }
    if (seen.dropped > before) seen.droppingMs += performance.now() - begunMs;
    await sleep(lookIntervalMs);
  }
}

async function countRecords(): Promise<number> {
  const [row] = await runSql(url, "SELECT count(*) FROM deletions");
  return Number(row?.["count"]);
}

async function bytesOf(table: string): Promise<number> {
  const sql = `SELECT sum(shard_size)::bigint AS bytes FROM citus_shards WHERE table_name::text LIKE '${table}%'`;
  const [row] = await runSql(url, sql);
  return Number(row?.["bytes"]);
}
