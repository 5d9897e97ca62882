import type { StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import type { Dropped, Slice } from "./placement.ts";

// The parameters: how long records are kept, the time in µs at which the search starts, and the most records. The index
// still has entries of dropped records before that time, and reading them for each slice would take longer and longer.
// Concurrent processes drop different records.
const dropSql = ({ deletions }: StoreSchema): string => `
  WITH old AS (
    SELECT seq, deleted_at FROM ${deletions}
    WHERE deleted_at < pg_catalog.now() - $1::interval
    AND deleted_at >= pg_catalog.to_timestamp($2::bigint / 1000000.0)
    ORDER BY deleted_at LIMIT $3::integer FOR UPDATE SKIP LOCKED),
  dropped AS (DELETE FROM ${deletions} WHERE seq = ANY(ARRAY(SELECT seq FROM old)) RETURNING 1)
  SELECT (SELECT pg_catalog.count(*) FROM dropped),
    (SELECT pg_catalog.floor(extract(epoch FROM pg_catalog.max(deleted_at)) * 1000000)::bigint FROM old)`;

// Forces the index on the time: without statistics, for example after a restore, the planner would read all expired
// records for each slice. The timeout releases the rows of a process that hangs before its commit.
const orderedTransaction = `${readCommitted}; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
  SET LOCAL idle_in_transaction_session_timeout = '5s'`;

/** Drops a slice of the expired records, the oldest first. */
export async function dropRows(
  session: Session,
  schema: StoreSchema,
  keptMs: number,
  { max, fromUs = 0 }: Slice,
): Promise<Dropped> {
  const values = [`${keptMs} milliseconds`, fromUs, max];
  const [row = []] = await session.transact(orderedTransaction, () => session.query(dropSql(schema), values));
  const [count = 0, reachedTimeUs = 0] = row.map(Number);
  // A trigger may keep every record in a slice. Then the next slice starts after it, unless all its records have the
  // same time.
  return { count, isMore: count > 0 || reachedTimeUs > fromUs, reachedTimeUs };
}
