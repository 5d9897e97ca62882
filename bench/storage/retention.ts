/**
 * Measures the cost of dropping old deletion records in PostgreSQL and SQLite, in turns with and without idempotency
 * keys. The program reports dropped records per second, and deletions per second by 256 callers. The deletions are
 * measured while records are dropped, and with as many records that are kept. `npx node bench/storage/retention.ts
 * [--records 200000] [--seconds 3] [--turns 3]`
 */
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { migratePlants, openSqliteStore } from "../../src/stores/index.ts";
import { startRetention } from "../../src/stores/postgres/all-plants/retention.ts";
import { singleServer } from "../../src/stores/postgres/delete/store-tables.ts";
import { findSchema } from "../../src/stores/postgres/schema/store-schema.ts";
import { readServerUrl } from "../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../src/stores/postgres/server/session.ts";
import { deletionsKeptMsDefault } from "../../src/stores/contract/store-options.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { prepareDeleteBatch } from "../../src/stores/sqlite/delete-batch.ts";
import { runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { createTempFolder } from "../../protoport/testing/src/process/temp-folder.ts";
import { numberFlags } from "../../protoport/bench/options.ts";
import { median } from "../../protoport/bench/summary.ts";
import type { StoreLocation } from "./stores.ts";
import { type Alone, measureAlone } from "./subject.ts";

const { records, seconds, turns } = numberFlags({ records: 200_000, seconds: 3, turns: 3 });
const plants = 500_000;
const batchSize = 1_000;

/** A kind of deletion records, in a separate store. */
interface Shape {
  readonly name: string;
  readonly store: "postgres" | "sqlite";
  readonly location: StoreLocation;
  /** Empties the store, and fills it with all plants. */
  readonly fill: () => Promise<void>;
  /** Adds the deleted plants again, and records with an age in days. */
  readonly addRecords: (daysAgo: number) => Promise<void>;
  /** Drops the records that are too old, and returns the number of dropped records per second. */
  readonly dropOld: () => Promise<number>;
  readonly alone: Alone[];
  readonly duringDrop: Alone[];
  readonly dropped: number[];
}

// The stores are on disk, because the disk's speed is part of the result.
using folder = createTempFolder();
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=8GB"], { onDisk: true });
const shapes = [
  await openPostgres("PostgreSQL, with keys", true),
  await openPostgres("PostgreSQL", false),
  onSqlite("SQLite, with keys", true),
  onSqlite("SQLite", false),
];
for (let turn = 0; turn < turns; turn++) {
  for (const shape of turn % 2 === 0 ? shapes : shapes.toReversed()) await measure(shape);
}
console.log(`${records} records dropped per turn, ${turns} turns; medians per second\n`);
console.log("                        deletions   p99 ms   during   p99 ms    records dropped    times the deletions");
for (const { name, alone, duringDrop, dropped } of shapes) {
  const perS = median(alone.map((results) => results.perS));
  const loads = [alone, duringDrop].flatMap((results) => [
    median(results.map((one) => one.perS)),
    median(results.map(({ latencyUs }) => latencyUs.p99)) / 1_000,
  ]);
  const cells = [...loads, median(dropped)].map((cell, i) => cell.toFixed(0).padStart([11, 9, 9, 9, 19][i] ?? 0));
  console.log(`${name.padEnd(22)}${cells.join("")}   ${(median(dropped) / perS).toFixed(1)}`);
}

async function openPostgres(name: string, hasKeys: boolean): Promise<Shape> {
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  const addSql = (daysAgo: number): string => `
    INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
    SELECT -id, now() - interval '${daysAgo} days' + id * interval '0.1 ms', 'bench', id, gen_random_uuid(),
      ${hasKeys ? "gen_random_uuid()" : "NULL"}
    FROM generate_series(1, ${records}) AS id`;
  return onPostgres(name, { file: "", url, plants, hasKeys }, addSql);
}

function onPostgres(name: string, location: StoreLocation, addSql: (daysAgo: number) => string): Shape {
  const { url } = location;
  const addPlantsSql = `INSERT INTO plants SELECT generate_series(1, ${plants}) ON CONFLICT DO NOTHING`;
  return {
    name,
    store: "postgres",
    location,
    fill: async () => void (await runSql(url, `TRUNCATE plants, deletions; ${addPlantsSql}; ANALYZE plants`)),
    addRecords: async (daysAgo) => {
      await runSql(url, addPlantsSql);
      await runSql(url, addSql(daysAgo));
    },
    dropOld: () => dropOldOfPostgres(url),
    alone: [],
    duringDrop: [],
    dropped: [],
  };
}

function onSqlite(name: string, hasKeys: boolean): Shape {
  const file = folder.file(`${hasKeys}.db`);
  return {
    name,
    store: "sqlite",
    location: { file, url: "", plants, hasKeys },
    fill: async () => {
      rmSync(file, { force: true });
      openDatabase({ file, plantsWhenCreated: { first: 1n, last: BigInt(plants) } }).close();
    },
    addRecords: async (daysAgo) => addToSqlite(file, hasKeys, daysAgo),
    dropOld: () => dropOldOfSqlite(file),
    alone: [],
    duringDrop: [],
    dropped: [],
  };
}

/** Deletes plants with the clock set back by some days. */
function addToSqlite(file: string, hasKeys: boolean, daysAgo: number): void {
  using db = openDatabase({ file });
  db.exec(`
    WITH RECURSIVE ids (id) AS (SELECT ${-records} UNION ALL SELECT id + 1 FROM ids WHERE id < ${plants})
    INSERT OR IGNORE INTO plants SELECT id FROM ids WHERE id <> 0`);
  const deleteBatch = prepareDeleteBatch(db);
  const { now } = Date;
  Date.now = () => now() - daysAgo * 86_400_000;
  for (let id = -records; id < 0; id += batchSize) {
    const ids = Array.from({ length: Math.min(batchSize, -id) }, (_, i) => BigInt(id + i));
    deleteBatch(ids.map((one) => [one, "bench", String(one), hasKeys ? `:${randomUUID()}` : null]));
  }
  Date.now = now;
}

async function measure({
  store,
  location,
  fill,
  addRecords,
  dropOld,
  alone,
  duringDrop,
  dropped,
}: Shape): Promise<void> {
  await fill();
  // Adds an equal number of records that are kept, so that the disk writes as much.
  await addRecords(10);
  alone.push(await measureAlone(store, location, seconds));
  await fill();
  await addRecords(100);
  dropped.push(await dropOld());
  await addRecords(100);
  // The store starts to drop old records when it is opened.
  duringDrop.push(await measureAlone(store, location, seconds));
}

async function dropOldOfSqlite(file: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const store = await openSqliteStore({
    file,
    onUpkeep: (upkeep) => {
      if (upkeep.kind === "records-dropped") resolve((upkeep.count / upkeep.lastedMs) * 1_000);
      else reject(new Error(`${upkeep.kind}: nothing was dropped`));
    },
  });
  try {
    return await promise;
  } finally {
    await store.close();
  }
}

async function dropOldOfPostgres(url: string): Promise<number> {
  const dropped = Promise.withResolvers<number>();
  const begunMs = performance.now();
  const stopRetention = startRetention(new Session(readServerUrl(url)), {
    keptMs: deletionsKeptMsDefault,
    tablesOn: async (session) => singleServer(await findSchema(session)),
    onUpkeep: (upkeep) => {
      if (upkeep.kind === "records-dropped") dropped.resolve((upkeep.count / (performance.now() - begunMs)) * 1_000);
      else dropped.reject(new Error(`${upkeep.kind}: nothing was dropped`));
    },
  });
  try {
    return await dropped.promise;
  } finally {
    await stopRetention();
  }
}
