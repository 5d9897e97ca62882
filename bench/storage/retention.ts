/**
 * What it costs to drop old deletion records, by turns from one table, row by row, and by day: dropped records a second,
 * and deletions a second with 256 callers, alone and beside that.
 * `npx node bench/storage/retention.ts [--records 200000] [--seconds 3] [--turns 3]`
 */
import { migratePlants } from "../../src/plantstore/plants/index.ts";
import { Retention } from "../../src/plantstore/plants/postgres/all-plants/retention.ts";
import { oneServer, oneServerByDay } from "../../src/plantstore/plants/postgres/delete/one-server.ts";
import type { Placement } from "../../src/plantstore/plants/postgres/delete/placement.ts";
import { migrations } from "../../src/plantstore/plants/postgres/schema/migrations.ts";
import { readServerUrl } from "../../src/plantstore/plants/postgres/server/server-url.ts";
import { Session } from "../../src/plantstore/plants/postgres/server/session.ts";
import { deletionsKeptMsDefault } from "../../src/plantstore/plants/retention.ts";
import { runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { numberFlags } from "../options.ts";
import { median } from "../summary.ts";
import { measureAlone } from "./subject.ts";

const { records, seconds, turns } = numberFlags({ records: 200_000, seconds: 3, turns: 3 });
const plants = 500_000;

/** A store, and how its old records are dropped. */
interface Shape {
  readonly name: string;
  readonly url: string;
  readonly placement: Placement;
  /** Where records are that are old enough to be dropped. */
  readonly addOldSql: string;
  readonly alone: number[];
  readonly beside: number[];
  readonly dropped: number[];
}

// The disk counts here.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=8GB"], { onDisk: true });
const shapes = [await openWhole(), await openByDay()];
for (let turn = 0; turn < turns; turn++) {
  for (const shape of turn % 2 === 0 ? shapes : shapes.toReversed()) await measure(shape);
}
console.log(`${records} records dropped a turn, ${turns} turns; medians a second\n`);
console.log("              deletions   beside    records dropped    times the deletions");
for (const { name, alone, beside, dropped } of shapes) {
  const figures = [median(alone), median(beside), median(dropped)].map((figure) => Math.round(figure));
  const times = (median(dropped) / median(alone)).toFixed(1);
  console.log(
    `${name.padEnd(12)}${figures.map((figure, i) => String(figure).padStart([11, 9, 19][i] ?? 0)).join("")}   ${times}`,
  );
}

async function openWhole(): Promise<Shape> {
  const url = await postgres.createSchema();
  for (const { sql, index } of migrations.slice(0, 3)) {
    await runSql(url, sql);
    if (index !== undefined) await runSql(url, index.create);
  }
  await runSql(url, `UPDATE plantstore_schema SET version = ${migrations.length}`);
  const addOldSql = `
    INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
    SELECT -id, now() - interval '100 days' + id * interval '1 ms', 'bench', id, gen_random_uuid() FROM generate_series(1, ${records}) AS id`;
  return { name: "row by row", url, placement: oneServer, addOldSql, alone: [], beside: [], dropped: [] };
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
  return { name: "by day", url, placement: oneServerByDay, addOldSql, alone: [], beside: [], dropped: [] };
}

async function measure(shape: Shape): Promise<void> {
  const { url, addOldSql, alone, beside, dropped } = shape;
  const place = { file: "", url, plants };
  await runSql(url, `TRUNCATE plants; INSERT INTO plants SELECT generate_series(1, ${plants}); ANALYZE plants`);
  alone.push(await measureAlone("postgres", place, seconds));
  await runSql(url, addOldSql);
  dropped.push(await dropOld(shape));
  await runSql(url, `INSERT INTO plants SELECT generate_series(1, ${plants}) ON CONFLICT DO NOTHING`);
  await runSql(url, addOldSql);
  // The store drops them as soon as it is open.
  beside.push(await measureAlone("postgres", place, seconds));
}

/** Drops what is too old, and returns how many records a second. */
async function dropOld({ url, placement }: Shape): Promise<number> {
  const told = Promise.withResolvers<number>();
  const begunMs = performance.now();
  const retention = new Retention(new Session(readServerUrl(url)), {
    keptMs: deletionsKeptMsDefault,
    placement: () => placement,
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
