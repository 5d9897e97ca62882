import { setTimeout as sleep } from "node:timers/promises";
import { retentionIntervalMs, type OnUpkeep, reportDropped } from "../../contract/store-options.ts";
import { problemOf } from "../delete/fault-table.ts";
import type { StoreTables } from "../delete/store-tables.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import { briefTransaction } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";

// Maximum number of rows per transaction. A slice takes some ten milliseconds and writes up to 5 MB to the WAL, which
// does not delay a standby. Smaller slices are slower, because each slice waits for the disk.
const maxSlice = 20_000;

/** Options for {@link startRetention}. */
export interface RetentionOptions {
  readonly keptMs: number;
  /** Returns the tables with the records. */
  readonly tablesOn: (session: Session) => Promise<StoreTables>;
  /** Returns whether plants were deleted since a `performance.now()` time. If so, retention pauses. Default never. */
  readonly hasDeletedSince?: (timeMs: number) => boolean;
  readonly onUpkeep?: OnUpkeep | undefined;
}

/**
 * Drops expired records immediately, and then every {@link retentionIntervalMs}. The retention owns the session.
 *
 * @returns a function that cancels the running statement, even on a hung server. Resolves once all drops are reported
 */
export function startRetention(session: Session, options: RetentionOptions): () => Promise<void> {
  const { keptMs, tablesOn, hasDeletedSince, onUpkeep } = options;
  const stopping = new AbortController();
  const drop = async (): Promise<void> => {
    const begunMs = performance.now();
    let count = 0;
    let problem: string | undefined;
    try {
      // The loop ends when the session is closed, because a closed session rejects the slice.
      for (let slice: Dropped = { count: 0, isMore: true }; slice.isMore;) {
        const sliceBegunMs = performance.now();
        const tables = await tablesOn(session);
        slice = await dropOldRecords(session, tables.schema, keptMs, { max: maxSlice, fromUs: slice.reachedTimeUs });
        count += slice.count;
        const pauseMs = (performance.now() - sliceBegunMs) * tables.dropPause;
        if (slice.isMore && hasDeletedSince?.(sliceBegunMs) === true)
          await sleep(pauseMs, undefined, { signal: stopping.signal });
      }
    } catch (fault) {
      // Only reports the error, because a problem with the server also fails the next batch.
      if (!stopping.signal.aborted) problem = problemOf(fault).text;
    }
    reportDropped(onUpkeep, count, begunMs, problem);
    // Closes the connection, which is not needed until the next interval.
    session.discard();
  };
  let dropping = drop();
  const timer = setInterval(() => void (dropping = dropping.then(drop)), retentionIntervalMs).unref();
  return async () => {
    stopping.abort();
    clearInterval(timer);
    await session.close();
    await dropping;
  };
}

/** The result of {@link dropOldRecords}. */
export interface Dropped {
  readonly count: number;
  /** Whether more expired records may remain. */
  readonly isMore: boolean;
  /** The time at which the next slice starts, in µs since 1970. By default, the time of the oldest record. */
  readonly reachedTimeUs?: number;
}

const toTime = (us: string): string => `pg_catalog.to_timestamp(${us}::bigint / 1000000.0)`;

// $1 is how long records are kept. $2 is where the search starts, in µs, to skip index entries of dropped records.
const oldSql = `deleted_at < pg_catalog.now() - $1::interval AND deleted_at >= ${toTime("$2")}`;

// Finds the time at which the next slice starts. Converts only one row's time, outside the subquery.
const nextSql = ({ deletions }: StoreSchema): string => `
  SELECT pg_catalog.floor(extract(epoch FROM deleted_at) * 1000000)::bigint FROM (
    SELECT deleted_at FROM ${deletions} WHERE ${oldSql} ORDER BY deleted_at OFFSET $3::integer LIMIT 1) AS next`;

const dropUntilSql = ({ deletions }: StoreSchema): string => `
  DELETE FROM ${deletions} WHERE ${oldSql} AND deleted_at < coalesce(${toTime("$3")}, 'infinity')`;

// Forces the index on the time. Without statistics, for example after a restore, the planner would read all expired
// records for each slice. Sets timeouts, because a session behind PgBouncer has no timeouts. The timeouts limit the
// wait for a table or a row, and release rows if a process hangs before its commit.
const orderedTransaction = `${briefTransaction}; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
  SET LOCAL lock_timeout = '3s'`;

/**
 * Drops about `max` records older than `keptMs`, oldest first, in one transaction. Starts at `fromUs`, which is
 * {@link Dropped.reachedTimeUs} of the previous slice. Waits for records that another process is dropping. Selecting the
 * records first, and finding each record by its row, would take 1.7 times as long.
 */
export async function dropOldRecords(
  session: Session,
  schema: StoreSchema,
  keptMs: number,
  { max, fromUs = 0 }: { readonly max: number; readonly fromUs?: number | undefined },
): Promise<Dropped> {
  const values = [`${keptMs} milliseconds`, fromUs];
  return await session.transact(orderedTransaction, async () => {
    const [[next = null] = []] = await session.query(nextSql(schema), [...values, max]);
    // If `next` is the start time, more records than fit in one slice have this time. They are dropped together.
    const untilUs = next === null ? null : Number(next) + (next === String(fromUs) ? 1 : 0);
    const count = await session.change(dropUntilSql(schema), [...values, untilUs]);
    return untilUs === null ? { count, isMore: false } : { count, isMore: true, reachedTimeUs: untilUs };
  });
}
