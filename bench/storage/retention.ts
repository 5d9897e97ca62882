/**
 * What it costs to drop old deletion records, by turns those with idempotency keys, row by row, and those without, by
 * day: dropped records a second, and deletions of the same kind a second with 256 callers, alone and beside that.
 * `npx node bench/storage/retention.ts [--records 200000] [--seconds 3] [--turns 3]`
 */
import { migratePlants } from "../../src/plantstore/plants/index.ts";
import { Retention } from "../../src/plantstore/plants/postgres/all-plants/retention.ts";
import { oneServerByDay } from "../../src/plantstore/plants/postgres/delete/one-server.ts";
import { readServerUrl } from "../../src/plantstore/plants/postgres/server/server-url.ts";
import { Session } from "../../src/plantstore/plants/postgres/server/session.ts";
import { deletionsKeptMsDefault } from "../../src/plantstore/plants/retention.ts";
import { runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { numberFlags } from "../options.ts";
import { median } from "../summary.ts";
import { type Alone, measureAlone } from "./subject.ts";

const { records, seconds, turns } = numberFlags({ records: 200_000, seconds: 3, turns: 3 });
const plants = 500_000;

/** Records of one kind, in a store of their own. */
interface Shape {
  readonly name: string;
  readonly url: string;
  readonly hasKeys: boolean;
  /** Where records are that are old enough to be dropped. */
  readonly addOldSql: string;
  readonly alone: Alone[];
  readonly beside: Alone[];
  readonly dropped: number[];
}

// The disk counts here.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=8GB"], { onDisk: true });
const shapes = [await openKeyed(), await openByDay()];
for (let turn = 0; turn < turns; turn++) {
  for (const shape of turn % 2 === 0 ? shapes : shapes.toReversed()) await measure(shape);
}
console.log(`${records} records dropped a turn, ${turns} turns; medians a second\n`);
console.log("              deletions   p99 ms   beside   p99 ms    records dropped    times the deletions");
for (const { name, alone, beside, dropped } of shapes) {
  const perS = median(alone.map((seen) => seen.perS));
  const loads = [alone, beside].flatMap((seen) => [
    median(seen.map((one) => one.perS)),
    median(seen.map(({ latencyUs }) => latencyUs.p99)) / 1_000,
  ]);
  const cells = [...loads, median(dropped)].map((cell, i) => cell.toFixed(0).padStart([11, 9, 9, 9, 19][i] ?? 0));
  console.log(`${name.padEnd(12)}${cells.join("")}   ${(median(dropped) / perS).toFixed(1)}`);
}

async function openKeyed(): Promise<Shape> {
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  const addOldSql = `
    INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
    SELECT -id, now() - interval '100 days' + id * interval '0.1 ms', 'bench', id, gen_random_uuid(), gen_random_uuid()
    FROM generate_series(1, ${records}) AS id`;
  return { name: "with keys", url, hasKeys: true, addOldSql, alone: [], beside: [], dropped: [] };
}

async function openByDay(): Promise<Shape> {
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  const addOldSql = `
    DO $$ DECLARE day timestamptz := date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '100 days';
    BEGIN
      EXECUTE format('CREATE TABLE %I PARTITION OF deletions_by_day FOR VALUES FROM (%L) TO (%L)',
        to_char(day AT TIME ZONE 'UTC', '"deletions_"YYYYMMDD'), day, day + interval '1 day');
      INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, by_day)
      SELECT -id, day + id * interval '0.1 ms', 'bench', id, gen_random_uuid(), true FROM generate_series(1, ${records}) AS id;
    END $$`;
  return { name: "by day", url, hasKeys: false, addOldSql, alone: [], beside: [], dropped: [] };
}

async function measure(shape: Shape): Promise<void> {
  const { url, hasKeys, addOldSql, alone, beside, dropped } = shape;
  const place = { file: "", url, plants, hasKeys };
  await runSql(
    url,
    `TRUNCATE plants, deletions; INSERT INTO plants SELECT generate_series(1, ${plants}); ANALYZE plants`,
  );
  alone.push(await measureAlone("postgres", place, seconds));
  await runSql(url, addOldSql);
  dropped.push(await dropOld(shape));
  await runSql(url, `INSERT INTO plants SELECT generate_series(1, ${plants}) ON CONFLICT DO NOTHING`);
  await runSql(url, addOldSql);
  // The store drops them as soon as it is open.
  beside.push(await measureAlone("postgres", place, seconds));
}

/** Drops what is too old, and returns how many records a second. */
async function dropOld({ url }: Shape): Promise<number> {
  const told = Promise.withResolvers<number>();
  const begunMs = performance.now();
  const retention = new Retention(new Session(readServerUrl(url)), {
    keptMs: deletionsKeptMsDefault,
    placement: () => oneServerByDay,
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
