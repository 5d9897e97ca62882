import { expect, onTestFinished, test, vi } from "vitest";
import { dropOldRecords, startRetention } from "../../../../src/stores/postgres/all-plants/retention.ts";
import { singleServer } from "../../../../src/stores/postgres/delete/store-tables.ts";
import { storeSchema } from "../../../../src/stores/postgres/schema/store-schema.ts";
import { readServerUrl } from "../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../src/stores/postgres/server/session.ts";
import { retentionIntervalMs, type Upkeep } from "../../../../src/stores/contract/store-options.ts";

// Retention in a PostgreSQL is tested in suites/long.

/** Returns a session for slices whose next records have these times in µs. Each slice drops `count` records. */
function sessionOf(times: readonly (number | Error | null)[], count = 3) {
  const left = [...times];
  const [values, events]: [unknown[], string[]] = [[], []];
  const session = Object.assign(new Session(readServerUrl("postgres://localhost/plants")), {
    transact: (_begin: string, work: () => Promise<unknown>) => work(),
    query: async () => {
      const time = left.shift() ?? null;
      if (time instanceof Error) throw time;
      return time === null ? [] : [[String(time)]];
    },
    change: async (_sql: string, [, fromUs, untilUs]: readonly unknown[]) => (values.push([fromUs, untilUs]), count),
    discard: () => events.push("discard"),
    close: async () => void events.push("close"),
  });
  return { session, values, events };
}

const schema = storeSchema("public");

test.for([
  ["before the next record's time, even if a trigger keeps its records", 9, 9],
  ["after the records with the start time if they fill the slice", 5, 6],
  ["nowhere if no further record is expired", null, undefined],
] as const)("a slice that starts at 5 ends %s", async ([, next, reachedTimeUs]) => {
  const { session, values } = sessionOf([next], 0);
  const slice = await dropOldRecords(session, schema, 1, { max: 3, fromUs: 5 });
  const isMore = reachedTimeUs !== undefined;
  expect(slice).toEqual(isMore ? { count: 0, isMore, reachedTimeUs } : { count: 0, isMore });
  expect(values).toEqual([[5, reachedTimeUs ?? null]]);
});

/** Starts retention with fake timers. */
function retain(times: readonly (number | Error | null)[], count?: number, hasDeletedSince = () => false) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const opened = sessionOf(times, count);
  const reports: Upkeep[] = [];
  const tables = { ...singleServer(schema), dropPause: 500_000 };
  const onUpkeep = (upkeep: Upkeep): void => void reports.push(upkeep);
  const options = { keptMs: 1, tablesOn: async () => tables, hasDeletedSince, onUpkeep };
  return { ...opened, reports, stop: startRetention(opened.session, options) };
}

const dropped = (count: number) => ({ kind: "records-dropped", count, lastedMs: expect.any(Number) });

test("retention drops slice after slice, and again after each interval, until it is stopped", async () => {
  const { values, events, reports, stop } = retain([7, null, null]);
  await expect.poll(() => reports).toEqual([dropped(6)]);
  expect([values, events]).toEqual([[[0, 7], [7, null]], ["discard"]]); // oxfmt-ignore
  vi.advanceTimersByTime(retentionIntervalMs);
  await expect.poll(() => reports).toEqual([dropped(6), dropped(3)]);
  expect(values.at(-1)).toEqual([0, null]);
  await stop();
  expect([events, vi.getTimerCount()]).toEqual([["discard", "discard", "close"], 0]);
});

test("retention reports what it dropped before an error, and the error", async () => {
  const { events, reports, stop } = retain([7, new Error("the server is gone")]);
  const failed = { kind: "retention-failed", problem: "the server is gone", lastedMs: expect.any(Number) };
  await expect.poll(() => reports).toEqual([dropped(3), failed]);
  expect(events).toEqual(["discard"]);
  await stop();
});

test("stopping retention ends its pause between slices, and reports the dropped records but no error", async () => {
  const { values, reports, stop } = retain([7, 8, null], 3, () => true);
  await expect.poll(() => values).toHaveLength(1);
  await stop();
  expect([values.length, reports]).toEqual([1, [dropped(3)]]);
});

test("retention neither reports nor pauses if no record is expired", async () => {
  const { events, reports, stop } = retain([null], 0, () => true);
  await expect.poll(() => events).toEqual(["discard"]);
  await stop();
  expect(reports).toEqual([]);
});
