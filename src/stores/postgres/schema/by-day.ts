import { pinned } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import type { StoreSchema } from "./store-schema.ts";

/** Returns whether the deletion records are in partitions by day. */
export async function isByDay(session: Session, { deletions }: StoreSchema): Promise<boolean> {
  return (await session.query(isPartitionedSql, [deletions])).length > 0;
}

const isPartitionedSql = "SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass($1) AND relkind = 'p'";

/** Makes the partitions of the next days, if they are missing. */
export async function makeDays(session: Session, { quoted }: StoreSchema): Promise<void> {
  await session.query(`SELECT ${quoted}.plantstore_make_days() WHERE ${pinned}`);
}

/**
 * Returns whether the server is PostgreSQL itself, from the first release that has triggers for each row of a partitioned
 * table. The engines that speak its protocol have another name in their version.
 */
export async function isPostgres(session: Session): Promise<boolean> {
  const [row] = await session.query(isPostgresSql);
  return row?.[0] === "t";
}

const isPostgresSql = `
  SELECT pg_catalog.version() ~ '^PostgreSQL [0-9]+[a-z0-9.]* '
    AND pg_catalog.current_setting('server_version_num')::integer >= 130000`;
