import { DatabaseSync } from "node:sqlite";
import { migratePlants, backUp, restore } from "../../../src/stores/index.ts";
import { createTempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";
import { ageRecords as ageInPostgres } from "../plants/postgres-of-file.ts";
import { type PostgresServer, runSql } from "../plants/postgres-server.ts";
import { ageRecords as ageInSqlite } from "../plants/sqlite-file.ts";
import type { Database, StoredRecord } from "./store-host.ts";

const ageDays = 3;
const lockTimeoutMs = 10_000;

export async function createSqlite(): Promise<Database> {
  const folder = createTempFolder();
  const path = folder.file("plants.db");
  const location = { kind: "sqlite", path } as const;
  await migratePlants(location);
  let backups = 0;
  // With a timeout, because a store that starts after a crash locks the file.
  const query = (sql: string): Promise<readonly Record<string, unknown>[]> => {
    using db = new DatabaseSync(path, { readBigInts: true, timeout: lockTimeoutMs });
    return Promise.resolve(db.prepare(sql).all());
  };
  return {
    location,
    query,
    keepsNewest: true,
    records: async () =>
      toRecords(
        await query(
          `SELECT plant_id, subject, request_id, idempotency_key
           FROM deletions LEFT JOIN idempotency_keys USING (seq, deleted_at) ORDER BY seq`,
        ),
      ),
    age: async () => ageInSqlite(path, ageDays),
    settle: () => Promise.resolve(),
    backUp: () => {
      const copy = folder.file(`backup-${++backups}.db`);
      backUp(path, copy);
      return () => restore(path, copy);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(folder[Symbol.dispose]()),
  };
}

export async function createPostgres(server: PostgresServer): Promise<Database> {
  const url = await server.createPlants();
  const query = (sql: string) => runSql(url, sql);
  return {
    location: { kind: "postgres", url },
    query,
    keepsNewest: false,
    records: async () =>
      toRecords(await query("SELECT plant_id, subject, request_id, idempotency_key FROM deletions ORDER BY seq")),
    age: () => ageInPostgres(url, ageDays),
    settle: async () => {
      const running = "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
      while ((await query(`${running} AND state <> 'idle'`)).length > 0)
        await new Promise((resolve) => setTimeout(resolve, 5));
    },
    crash: async () => {
      await server.stop("kill");
      await server.start();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function toRecords(rows: readonly Record<string, unknown>[]): readonly StoredRecord[] {
  return rows.map((row) => {
    const key = row["idempotency_key"];
    return {
      id: Number(row["plant_id"]),
      subject: String(row["subject"]),
      key: typeof key === "string" ? key : undefined,
      requestId: String(row["request_id"]),
    };
  });
}
