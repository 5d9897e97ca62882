import type { Row, Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";

/** Drops a slice of old records by the parameters of {@link dropSql}, and returns how many, and up to which µs. */
type DropRows = (session: Session, values: readonly unknown[]) => Promise<Row>;

// Its parameters: how long records are kept, how many to drop, and from which µs on. Before that, the index still has
// entries of records that are gone, and to read them for each slice would take ever longer.
const dropSql = (condition: string, row: "seq" | "ctid", choice: string): string => `
  WITH old AS (
    SELECT ${row} AS place, deleted_at FROM deletions
    WHERE ${condition} AND deleted_at < now() - $1::interval AND deleted_at >= to_timestamp($3::bigint / 1000000.0)
      ${choice}),
  dropped AS (DELETE FROM deletions WHERE ${condition} AND ${row} = ANY(ARRAY(SELECT place FROM old)) RETURNING 1)
  SELECT (SELECT count(*) FROM dropped), (SELECT floor(extract(epoch FROM max(deleted_at)) * 1000000) FROM old)`;

const oldest = "ORDER BY deleted_at LIMIT $2::integer";

// Processes that drop records at the same time take different ones.
const unlocked = `${oldest} FOR UPDATE SKIP LOCKED`;

const dropOfTableSql = dropSql("true", "seq", unlocked);

// A `ctid` is found without an index, but only PostgreSQL has it, and it is unique only within one table.
const dropOldestSql = dropSql("by_day IS NULL", "ctid", oldest);
const dropUnlockedSql = dropSql("by_day IS NULL", "ctid", unlocked);

/** Drops records of a table that is not divided. */
export const dropRowsOfTable: DropRows = async (session, values) =>
  (await session.query(dropOfTableSql, values))[0] ?? [];

/**
 * Drops records that are not in the partition of a day. As rows are not locked first, a slice takes two thirds of the
 * time and half of the log. Those that are locked for long, as by another process that drops the same, are left to it.
 */
export const dropRowsByRow: DropRows = async (session, values) => {
  try {
    return await dropInOrder(session, dropOldestSql, values);
  } catch (fault) {
    if (sqlStateOf(fault) !== "55P03") throw fault;
    return await dropInOrder(session, dropUnlockedSql, values);
  }
};

// Without statistics, as after a restore, the planner would read and sort all old records for each slice, and not take
// them from the index. Behind PgBouncer a session has no limits of its own: here it may wait for a row only briefly, and
// a process that hangs before its commit must not keep its rows.
const inOrder = `
  BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_sort = off; SET LOCAL lock_timeout = '100ms';
  SET LOCAL idle_in_transaction_session_timeout = '5s'`;

async function dropInOrder(session: Session, sql: string, values: readonly unknown[]): Promise<Row> {
  try {
    await session.begin(inOrder);
    const [row = []] = await session.query(sql, values);
    await session.commit();
    return row;
  } catch (fault) {
    session.discard();
    throw fault;
  }
}
