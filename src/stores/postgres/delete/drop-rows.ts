import type { StoreSchema } from "../schema/store-schema.ts";
import { briefTransaction } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import type { Dropped, Slice } from "./store-tables.ts";

const toTime = (us: string): string => `pg_catalog.to_timestamp(${us}::bigint / 1000000.0)`;

// $1 is how long records are kept. $2 is where the search starts, in µs, to skip index entries of dropped records.
const oldSql = `deleted_at < pg_catalog.now() - $1::interval AND deleted_at >= ${toTime("$2")}`;

const toMicrosecondsSql = (time: string): string => `pg_catalog.floor(extract(epoch FROM ${time}) * 1000000)::bigint`;

// Skips locked records, so that concurrent processes drop different records.
const dropUnlockedSql = ({ deletions }: StoreSchema): string => `
  WITH old AS (
    SELECT seq, deleted_at FROM ${deletions} WHERE ${oldSql}
    ORDER BY deleted_at LIMIT $3::integer FOR UPDATE SKIP LOCKED),
  dropped AS (DELETE FROM ${deletions} WHERE seq = ANY(ARRAY(SELECT seq FROM old)) RETURNING 1)
  SELECT (SELECT pg_catalog.count(*) FROM dropped), (SELECT ${toMicrosecondsSql("pg_catalog.max(deleted_at)")} FROM old)`;

// Finds the time at which the next slice starts. Converts only one row's time, outside the subquery.
const nextSql = ({ deletions }: StoreSchema): string => `
  SELECT ${toMicrosecondsSql("deleted_at")} FROM (
    SELECT deleted_at FROM ${deletions} WHERE ${oldSql} ORDER BY deleted_at OFFSET $3::integer LIMIT 1) AS next`;

const dropUntilSql = ({ deletions }: StoreSchema): string => `
  DELETE FROM ${deletions} WHERE ${oldSql} AND deleted_at < coalesce(${toTime("$3")}, 'infinity')`;

/**
 * Drops a time range of the expired records. If a record stays locked, drops the others one by one. Selecting the
 * records first, and finding each record by its row, would take 1.7 times as long. Citus cannot skip locked records.
 */
export async function dropOldRows(
  session: Session,
  schema: StoreSchema,
  keptMs: number,
  slice: Slice,
  canSkipLocked = true,
): Promise<Dropped> {
  const { max, fromUs = 0 } = slice;
  const keptInterval = `${keptMs} milliseconds`;
  const dropOldest = async (): Promise<Dropped> => {
    const [[next = null] = []] = await session.query(nextSql(schema), [keptInterval, fromUs, max]);
    // If `next` is the start time, more records than fit in one slice have the same time.
    const isSameTime = next === String(fromUs);
    if (isSameTime && canSkipLocked) return await dropUnlocked(session, dropUnlockedSql(schema), keptMs, slice);
    const untilUs = next === null ? null : Number(next) + (isSameTime ? 1 : 0);
    const count = await session.change(dropUntilSql(schema), [keptInterval, fromUs, untilUs]);
    return untilUs === null ? { count, isMore: false } : { count, isMore: true, reachedTimeUs: untilUs };
  };
  try {
    return await session.transact(orderedTransaction, dropOldest);
  } catch (fault) {
    if (sqlStateOf(fault) !== "55P03" || !canSkipLocked) throw fault;
    return await session.transact(orderedTransaction, () =>
      dropUnlocked(session, dropUnlockedSql(schema), keptMs, slice),
    );
  }
}

async function dropUnlocked(
  session: Session,
  sql: string,
  keptMs: number,
  { max, fromUs = 0 }: Slice,
): Promise<Dropped> {
  const [row = []] = await session.query(sql, [`${keptMs} milliseconds`, fromUs, max]);
  const [count = 0, reachedTimeUs = 0] = row.map(Number);
  // If a trigger keeps a whole slice, the next slice starts later, unless all records in the slice have the same time.
  return { count, isMore: count > 0 || reachedTimeUs > fromUs, reachedTimeUs };
}

// Forces the index on the time. Without statistics, for example after a restore, the planner would read all expired
// records for each slice. Sets timeouts, because a session behind PgBouncer has no timeouts. The timeouts limit the
// wait for a row, and release rows if a process hangs before its commit.
const orderedTransaction = `${briefTransaction}; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
  SET LOCAL lock_timeout = '100ms'`;
