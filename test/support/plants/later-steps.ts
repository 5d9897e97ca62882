import { type PostgresMigration, tablesSql } from "../../../src/stores/postgres/schema/store-schema.ts";
import { schemaAfter } from "../../../src/stores/contract/schema-version.ts";
import { type PostgresServer, runSql } from "./postgres-server.ts";

export const laterSteps: readonly PostgresMigration[] = [
  { sql: "ALTER TABLE deletions ADD COLUMN note text", table: "deletions" },
  { sql: "ALTER TABLE deletions ADD COLUMN receipt text", table: "deletions" },
];

export const latestVersion: number = schemaAfter(laterSteps).version;

/** Creates a schema with a version up to the last step's. 0 is an empty one. */
export async function createSchemaOfVersion(server: PostgresServer, version: number): Promise<string> {
  const url = await server.createSchema();
  if (version === 0) return url;
  await runSql(url, tablesSql);
  for (const { sql } of laterSteps.slice(0, version - 1)) await runSql(url, sql);
  await runSql(url, `UPDATE plantstore_schema SET version = ${version}, oldest_server = ${Math.max(1, version - 1)}`);
  return url;
}
