import { cpuUsOfCitus } from "../../../bench/storage/cpu.ts";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { runSql } from "../../support/plants/postgres-server.ts";
import { startCitus } from "./citus-cluster.ts";

// `node test/suites/citus/load.ts [SHARDS] [keys|none] [OLD]` measures how many deletions callers that wait for each
// make per second, in the store without HTTP. Also measures the CPU time that the three servers use on this machine.
// Meanwhile, measures how long the store takes to drop the given number of expired records.

const plants = 600_000;
const callers = 256;
const seconds = 10;
const [shards = "32", keys = "none", old = "0"] = process.argv.slice(2);
await using cluster = await startCitus();
const url = await cluster.createSchema(Number(shards));
await migratePostgres(url);
await runSql(url, `INSERT INTO plants SELECT unnest(ARRAY(SELECT generate_series(1, ${plants})::bigint))`);
if (old !== "0") await addOld(Number(old));
let batches = 0;
const store = await openPostgresStore({
  url,
  onBatch: () => {
    batches++;
    return () => undefined;
  },
  onUpkeep: (upkeep) => void process.stdout.write(`${JSON.stringify(upkeep)}\n`),
});
const before = await cpuUsOfCitus(cluster);
const begun = performance.now();
const ownBefore = process.cpuUsage();
let next = 0;
const latencies: number[] = [];
await Promise.all(Array.from({ length: callers }, keepDeleting));
const took = (performance.now() - begun) / 1_000;
const own = process.cpuUsage(ownBefore);
const after = await cpuUsOfCitus(cluster);
const [sorted, deletions] = [latencies.toSorted((one, other) => one - other), latencies.length];
const quantile = (q: number): string => (sorted[Math.floor(q * deletions)] ?? 0).toFixed(1);
process.stdout.write(
  `${shards} shards: ${Math.round(deletions / took)} deletions/s, p50 ${quantile(0.5)} ms, p99 ${quantile(0.99)} ms, ` +
    `${(deletions / batches).toFixed(0)} in a batch; CPU a deletion: coordinator ${cost(0)} µs, workers together ` +
    `${cost(1)} µs, store ${((own.user + own.system) / deletions).toFixed(0)} µs\n`,
);
await store.close();

async function keepDeleting(): Promise<void> {
  while (next < plants && performance.now() - begun < seconds * 1_000) {
    const id = BigInt(++next);
    const sent = performance.now();
    const deleted = await store.delete(id, deleteCall(keys === "none" ? {} : { idempotencyKey: `key-${id}` }));
    if (!deleted) throw new Error(`plant ${id} was not there`);
    latencies.push(performance.now() - sent);
  }
}

async function addOld(records: number): Promise<void> {
  const sql = `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
     SELECT unnest(ARRAY(SELECT generate_series(-${records}, -1)::bigint)), '2020-01-01', 'ann', 'r', gen_random_uuid()`;
  await runSql(url, sql);
}

function cost(part: 0 | 1): string {
  return ((after[part] - before[part]) / deletions).toFixed(0);
}
