import { pinnedCondition } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import type { StoreSchema } from "./store-schema.ts";

/** Returns whether the deletion records are partitioned by day. */
export async function isByDay(session: Session, { deletions }: StoreSchema): Promise<boolean> {
  return (await session.query(isPartitionedSql, [deletions])).length > 0;
}

const isPartitionedSql = "SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass($1) AND relkind = 'p'";

/** Creates missing partitions of the next days. */
export async function createDayPartitions(session: Session, { quoted }: StoreSchema): Promise<void> {
  await session.query(`SELECT ${quoted}.plantstore_make_days() WHERE ${pinnedCondition}`);
}

/**
 * Returns whether the server is PostgreSQL itself, of a release that supports row triggers on partitioned tables. Other
 * engines that speak its protocol have another name in their version.
 */
export async function isPostgres(session: Session): Promise<boolean> {
  const [row] = await session.query(isPostgresSql);
  return row?.[0] === "t";
}

const isPostgresSql = `
  SELECT pg_catalog.version() ~ '^PostgreSQL [0-9]+[a-z0-9.]* '
    AND pg_catalog.current_setting('server_version_num')::integer >= 130000`;
