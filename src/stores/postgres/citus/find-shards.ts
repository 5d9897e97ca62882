import { StoreOpenError } from "../../store-open-error.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import type { Session } from "../server/session.ts";
import { deleteFunction } from "./delete-function.ts";
import { distributedByHand, isCitus } from "./distribute.ts";

/** The largest hash of each shard, in ascending order, and the index of its worker. */
export interface ShardRanges {
  readonly hashMax: readonly number[];
  readonly worker: readonly number[];
}

/**
 * Finds the shards of the tables; `undefined` if they are not distributed. An operator may add workers at any time.
 *
 * @throws StoreOpenError when the tables were not distributed by `migrate`, or warnings of workers would not arrive
 */
export async function findShards(session: Session, { quoted, plants }: StoreSchema): Promise<ShardRanges | undefined> {
  if (!(await isCitus(session))) return undefined;
  const rows = await session.query(shardsSql, [plants, `${quoted}.${deleteFunction}`]);
  if (rows.length === 0) return undefined;
  if (rows.some(([, , canDelete]) => canDelete === "f")) throw new StoreOpenError(distributedByHand);
  if (rows.some(([, , , showsAll]) => showsAll === "f")) throw new StoreOpenError(warningsHidden);
  return { hashMax: rows.map(([max]) => Number(max)), worker: rows.map(([, index]) => Number(index)) };
}

// A table on a single node has a shard without hashes, and is used as on any other server.
const shardsSql = `
  SELECT shardmaxvalue, pg_catalog.dense_rank() OVER (ORDER BY groupid) - 1,
    pg_catalog.to_regprocedure($2) IS NOT NULL,
    pg_catalog.current_setting('client_min_messages') LIKE 'debug%'
      AND pg_catalog.current_setting('citus.worker_min_messages') LIKE 'debug%'
  FROM pg_catalog.pg_dist_shard JOIN pg_catalog.pg_dist_placement USING (shardid)
  WHERE logicalrelid = pg_catalog.to_regclass($1) AND shardmaxvalue IS NOT NULL ORDER BY shardmaxvalue::integer`;

const warningsHidden =
  "set client_min_messages and citus.worker_min_messages to debug1 for the role, because a connection pooler drops the " +
  "values that the connection sets; otherwise a commit missing on the standbys of a worker would go unnoticed";
