import { runSql } from "../../support/plants/postgres-server.ts";
import type { CitusCluster } from "./citus-cluster.ts";

/** A trigger that runs PL/pgSQL, whose function is called `added`. */
export interface Trigger {
  readonly table: "plants" | "deletions";
  readonly when: "DELETE" | "INSERT";
  readonly sql: string;
  /** Whether the trigger runs before or after the row changes. Default BEFORE. */
  readonly at?: "BEFORE" | "AFTER";
  /** The plants for which the trigger runs, by default all. */
  readonly of?: bigint | readonly bigint[];
  /** The index of the worker whose shards get the trigger, by default all workers. */
  readonly on?: number;
}

export async function addTriggerOn(
  cluster: CitusCluster,
  url: string,
  { table, when, sql, at = "BEFORE", of, on }: Trigger,
): Promise<void> {
  const [row] = await runSql(url, "SELECT current_schema() AS schema");
  const schema = String(row?.["schema"]);
  const plant = table === "plants" ? "OLD.id" : "NEW.plant_id";
  const condition = of === undefined ? "" : `WHEN (${plant} IN (${[of].flat().join()}))`;
  for (const { url: worker } of cluster.workers.filter((_, i) => on === undefined || i === on)) {
    const shards = await runSql(
      worker,
      `SELECT shardid FROM citus_shards WHERE table_name = '${schema}.${table}'::regclass
        AND nodeport = current_setting('port')::int`,
    );
    const triggers = shards.map(
      ({ shardid }) => `CREATE TRIGGER added ${at} ${when} ON ${schema}.${table}_${String(shardid)}
        FOR EACH ROW ${condition} EXECUTE FUNCTION ${schema}.added();`,
    );
    await runSql(
      worker,
      `SET citus.enable_ddl_propagation = off; SET citus.enable_manual_changes_to_shards = on;
        CREATE FUNCTION ${schema}.added() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN ${sql}; END $$; ${triggers.join("")}`,
    );
  }
}
