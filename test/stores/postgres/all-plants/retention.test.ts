import { expect, onTestFinished, test, vi } from "vitest";
import { closing } from "@protoport/testing/process";
import { dropOldRecords, startRetention } from "../../../../src/stores/postgres/all-plants/retention.ts";
import { singleServer } from "../../../../src/stores/postgres/delete/store-tables.ts";
import { readServerUrl } from "../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../src/stores/postgres/server/session.ts";
import { retentionIntervalMs, type Upkeep } from "../../../../src/stores/contract/store-options.ts";
import { runSql, schemaOf, startPostgresOfFile } from "../../../support/plants/index.ts";

const server = await startPostgresOfFile();

/** Adds records with these times, in µs since 1970. */
const addRecords = (url: string, timesSql: string): Promise<unknown> =>
  runSql(
    url,
    `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
     SELECT 1, to_timestamp(us / 1e6), '', '', gen_random_uuid() FROM ${timesSql} AS us`,
  );

/** Returns the times of the remaining records. */
const timesIn = async (url: string): Promise<unknown[]> =>
  (await runSql(url, "SELECT (extract(epoch FROM deleted_at) * 1e6)::int AS us FROM deletions ORDER BY 1")).map(
    ({ us }) => us,
  );

/** Runs SQL before each statement that drops records. */
const addTrigger = (url: string, each: "ROW" | "STATEMENT", sql: string): Promise<unknown> =>
  runSql(
    url,
    `CREATE SEQUENCE slices; CREATE FUNCTION run() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${sql} RETURN NULL; END $$;
     CREATE TRIGGER run BEFORE DELETE ON deletions FOR EACH ${each} EXECUTE FUNCTION run()`,
  );

test.for([
  ["before the next record's time, even if a trigger keeps its records", [5, 6, 7, 9], true, 9, [5, 6, 7, 9]],
  ["after the records with the start time if they fill the slice", [5, 5, 5, 5, 6], false, 6, [6]],
  ["nowhere if no further record is expired", [4, 5, 6, 7], false, undefined, [4]],
] as const)("a slice that starts at 5 ends %s", async ([, times, isKept, reachedTimeUs, left]) => {
  const url = await server.createPlants();
  await addRecords(url, `unnest(ARRAY[${times.join()}])`);
  if (isKept) await addTrigger(url, "ROW", "");
  await using session = closing(new Session(readServerUrl(url)));
  const slice = await dropOldRecords(session, schemaOf(session), 1, { max: 3, fromUs: 5 });
  const [isMore, count] = [reachedTimeUs !== undefined, times.length - left.length];
  expect(slice).toEqual(isMore ? { count, isMore, reachedTimeUs } : { count, isMore });
  expect(await timesIn(url)).toEqual(left);
});

/** Starts retention with fake timers, of this many records. A slice has 20,000. */
async function retain(records: number, sliceSql: string = "", hasDeletedSince = () => false) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const url = await server.createPlants();
  await addRecords(url, `generate_series(1, ${records})`);
  await addTrigger(url, "STATEMENT", `PERFORM nextval('slices'); ${sliceSql}`);
  const session = new Session(readServerUrl(url));
  const reports: Upkeep[] = [];
  const tables = { ...singleServer(schemaOf(session)), dropPause: 500_000 };
  const onUpkeep = (upkeep: Upkeep): void => void reports.push(upkeep);
  const stop = startRetention(session, { keptMs: 1, tablesOn: async () => tables, hasDeletedSince, onUpkeep });
  return { url, session, reports, stop };
}

const dropped = (count: number) => ({ kind: "records-dropped", count, lastedMs: expect.any(Number) });

test("retention drops slice after slice, and again after each interval, until it is stopped", async () => {
  const { url, session, reports, stop } = await retain(20_001);
  await expect.poll(() => reports, { interval: 5 }).toEqual([dropped(20_001)]);
  expect([session.processId, await timesIn(url)]).toEqual([undefined, []]);
  await addRecords(url, "generate_series(1, 3)");
  vi.advanceTimersByTime(retentionIntervalMs);
  await expect.poll(() => reports, { interval: 5 }).toEqual([dropped(20_001), dropped(3)]);
  await stop();
  expect([session.processId, vi.getTimerCount()]).toEqual([undefined, 0]);
  await expect(session.query("SELECT")).rejects.toThrow("the session is closed");
});

test("retention reports what it dropped before an error, and the error", async () => {
  const { session, reports, stop } = await retain(20_001, "IF currval('slices') = 2 THEN RAISE 'no'; END IF;");
  const failed = { kind: "retention-failed", problem: "no", lastedMs: expect.any(Number) };
  await expect.poll(() => reports, { interval: 5 }).toEqual([dropped(20_000), failed]);
  expect(session.processId).toBe(undefined);
  await stop();
});

test("stopping retention ends its pause between slices, and reports the dropped records but no error", async () => {
  const { promise: firstSlice, resolve } = Promise.withResolvers<void>();
  const { url, reports, stop } = await retain(20_002, "", () => (resolve(), true));
  await firstSlice;
  await stop();
  expect([await timesIn(url), reports]).toEqual([[20_001, 20_002], [dropped(20_000)]]);
});

test("retention neither reports nor pauses if no record is expired", async () => {
  const { url, session, reports, stop } = await retain(0, "", () => true);
  await expect.poll(() => runSql(url, "SELECT is_called FROM slices"), { interval: 5 }).toEqual([{ is_called: true }]);
  await expect.poll(() => session.processId, { interval: 5 }).toBe(undefined);
  await stop();
  expect(reports).toEqual([]);
});
