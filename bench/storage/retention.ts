/**
 * What it costs to drop old deletion records of PostgreSQL and SQLite, by turns those with idempotency keys and those
 * without: dropped records a second, and deletions of the same kind a second with 256 callers, beside as many records
 * that are kept, and while they are dropped.
 * `npx node bench/storage/retention.ts [--records 200000] [--seconds 3] [--turns 3]`
 */
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { migratePlants, openSqliteStore } from "../../src/stores/index.ts";
import { Retention } from "../../src/stores/postgres/all-plants/retention.ts";
import { oneServerByDay } from "../../src/stores/postgres/delete/one-server.ts";
import { findSchema } from "../../src/stores/postgres/schema/store-schema.ts";
import { readServerUrl } from "../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../src/stores/postgres/server/session.ts";
import { deletionsKeptMsDefault } from "../../src/stores/retention.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { prepareDeleteBatch } from "../../src/stores/sqlite/delete-batch.ts";
import { runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";
import { numberFlags } from "../options.ts";
import { median } from "../summary.ts";
import type { Place } from "./stores.ts";
import { type Alone, measureAlone } from "./subject.ts";

const { records, seconds, turns } = numberFlags({ records: 200_000, seconds: 3, turns: 3 });
const plants = 500_000;
const batchSize = 1_000;

/** Records of one kind, in a store of their own. */
interface Shape {
  readonly name: string;
  readonly store: "postgres" | "sqlite";
  readonly place: Place;
  /** Empties the store, and fills it with all plants. */
  readonly fill: () => Promise<void>;
  /** Brings back the plants that are gone, and adds records of so many days ago. */
  readonly addRecords: (daysAgo: number) => Promise<void>;
  /** Drops what is too old, and returns how many records a second. */
  readonly dropOld: () => Promise<number>;
  readonly alone: Alone[];
  readonly beside: Alone[];
  readonly dropped: number[];
}

// The disk counts here.
using folder = createTempFolder();
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=8GB"], { onDisk: true });
const shapes = [await openKeyed(), await openByDay(), onSqlite("SQLite, with keys", true), onSqlite("SQLite", false)];
for (let turn = 0; turn < turns; turn++) {
  for (const shape of turn % 2 === 0 ? shapes : shapes.toReversed()) await measure(shape);
}
console.log(`${records} records dropped a turn, ${turns} turns; medians a second\n`);
console.log("                        deletions   p99 ms   beside   p99 ms    records dropped    times the deletions");
for (const { name, alone, beside, dropped } of shapes) {
  const perS = median(alone.map((seen) => seen.perS));
  const loads = [alone, beside].flatMap((seen) => [
    median(seen.map((one) => one.perS)),
    median(seen.map(({ latencyUs }) => latencyUs.p99)) / 1_000,
  ]);
  const cells = [...loads, median(dropped)].map((cell, i) => cell.toFixed(0).padStart([11, 9, 9, 9, 19][i] ?? 0));
  console.log(`${name.padEnd(22)}${cells.join("")}   ${(median(dropped) / perS).toFixed(1)}`);
}

async function openKeyed(): Promise<Shape> {
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  const addSql = (daysAgo: number): string => `
    INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
    SELECT -id, now() - interval '${daysAgo} days' + id * interval '0.1 ms', 'bench', id, gen_random_uuid(), gen_random_uuid()
    FROM generate_series(1, ${records}) AS id`;
  return onPostgres("PostgreSQL, with keys", { file: "", url, plants, hasKeys: true }, addSql);
}

async function openByDay(): Promise<Shape> {
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  const addSql = (daysAgo: number): string => `
    DO $$ DECLARE day timestamptz := date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '${daysAgo} days';
    BEGIN
      EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF deletions_by_day FOR VALUES FROM (%L) TO (%L)',
        to_char(day AT TIME ZONE 'UTC', '"deletions_"YYYYMMDD'), day, day + interval '1 day');
      INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, by_day)
      SELECT -id, day + id * interval '0.1 ms', 'bench', id, gen_random_uuid(), true FROM generate_series(1, ${records}) AS id;
    END $$`;
  return onPostgres("PostgreSQL, by day", { file: "", url, plants }, addSql);
}

function onPostgres(name: string, place: Place, addSql: (daysAgo: number) => string): Shape {
  const { url } = place;
  const addPlantsSql = `INSERT INTO plants SELECT generate_series(1, ${plants}) ON CONFLICT DO NOTHING`;
  return {
    name,
    store: "postgres",
    place,
    fill: async () => void (await runSql(url, `TRUNCATE plants, deletions; ${addPlantsSql}; ANALYZE plants`)),
    addRecords: async (daysAgo) => {
      await runSql(url, addPlantsSql);
      await runSql(url, addSql(daysAgo));
    },
    dropOld: () => dropOldOfPostgres(url),
    alone: [],
    beside: [],
    dropped: [],
  };
}

function onSqlite(name: string, hasKeys: boolean): Shape {
  const file = folder.file(`${hasKeys}.db`);
  return {
    name,
    store: "sqlite",
    place: { file, url: "", plants, hasKeys },
    fill: async () => {
      rmSync(file, { force: true });
      openDatabase({ file, plantsWhenCreated: { first: 1n, last: BigInt(plants) } }).close();
    },
    addRecords: async (daysAgo) => addToSqlite(file, hasKeys, daysAgo),
    dropOld: () => dropOldOfSqlite(file),
    alone: [],
    beside: [],
    dropped: [],
  };
}

/** As a store of that day has deleted. */
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
    const columns = { ids, subjects: ids.map(() => "bench"), requestIds: ids.map(String) };
    deleteBatch(hasKeys ? { ...columns, keys: ids.map(() => `:${randomUUID()}`) } : columns);
  }
  Date.now = now;
}

async function measure({ store, place, fill, addRecords, dropOld, alone, beside, dropped }: Shape): Promise<void> {
  await fill();
  // As many records, which are kept: the disk has as much to write of them.
  await addRecords(10);
  alone.push(await measureAlone(store, place, seconds));
  await fill();
  await addRecords(100);
  dropped.push(await dropOld());
  await addRecords(100);
  // The store drops them as soon as it is open.
  beside.push(await measureAlone(store, place, seconds));
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
  const told = Promise.withResolvers<number>();
  const begunMs = performance.now();
  const retention = new Retention(new Session(readServerUrl(url)), {
    keptMs: deletionsKeptMsDefault,
    placementOn: async (session) => oneServerByDay(await findSchema(session)),
    onUpkeep: (upkeep) => {
      if (upkeep.kind === "records-dropped") told.resolve((upkeep.count / (performance.now() - begunMs)) * 1_000);
      else told.reject(new Error(`${upkeep.kind}: nothing was dropped`));
    },
  });
  try {
    return await told.promise;
  } finally {
    await retention.stop();
  }
}
