/**
 * What it takes to migrate a PostgreSQL store with many deletion records from the release before, which does not divide
 * them by day, beside servers that keep deleting: how long it lasts, and deletions a second and how long the slowest
 * took, before, meanwhile and afterwards.
 * `npx node bench/storage/migrate.ts [--records 1000000] [--callers 16] [--seconds 5]`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { migratePlants } from "../../src/plantstore/plants/index.ts";
import { createStoreBefore } from "../../test/support/plants/days.ts";
import { runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { numberFlags } from "../options.ts";
import { stores } from "./stores.ts";

const { records, callers, seconds } = numberFlags({ records: 1_000_000, callers: 16, seconds: 5 });
const plants = 2_000_000;
// Rows a transaction.
const batchSize = 1_000_000;

// The disk counts here.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=8GB"], { onDisk: true });
const url = await createStoreBefore(postgres, plants);
for (let first = 1; first <= records; first += batchSize) {
  await runSql(
    url,
    `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
     SELECT -id, now() - interval '80 days' + id * interval '50 ms', 'bench', id, gen_random_uuid(),
       CASE WHEN id % 100 = 0 THEN 'key ' || id END
     FROM generate_series(${first}, ${Math.min(first + batchSize - 1, records)}) AS id`,
  );
}
const [{ size } = {}] = await runSql(url, "SELECT pg_size_pretty(pg_total_relation_size('deletions')) AS size");

// As a service of the release before does, which knows of no days.
const store = await stores["postgres single"]({ file: "", url, plants });
const over = new AbortController();
const context = { signal: over.signal };
let [nextId, deleted, slowestMs] = [1, 0, 0];
const calling = Promise.all(Array.from({ length: callers }, callOneAfterAnother));

console.log(`${records} records, ${String(size)}; ${callers} callers\n`);
console.log("              seconds   deletions/s   slowest, ms");
await tell("before", () => sleep(seconds * 1_000));
await tell("meanwhile", () => migratePlants({ kind: "postgres", url }));
await tell("afterwards", () => sleep(seconds * 1_000));
over.abort();
await calling;
await store.close();

async function callOneAfterAnother(): Promise<void> {
  while (!over.signal.aborted && nextId <= plants) {
    const beganMs = performance.now();
    if (await store.delete(BigInt(nextId++), { subject: "bench", requestId: "r", context })) deleted++;
    slowestMs = Math.max(slowestMs, performance.now() - beganMs);
  }
}

async function tell(when: string, work: () => Promise<unknown>): Promise<void> {
  const beganMs = performance.now();
  [deleted, slowestMs] = [0, 0];
  await work();
  const lastedS = (performance.now() - beganMs) / 1_000;
  const cells = [
    lastedS.toFixed(1).padStart(11),
    (deleted / lastedS).toFixed(0).padStart(14),
    slowestMs.toFixed(0).padStart(14),
  ];
  console.log(`${when.padEnd(10)}${cells.join("")}`);
}
