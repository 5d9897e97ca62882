import { expect, test } from "vitest";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";
import { runSql } from "../../../../support/plants/postgres-server.ts";

const server = await startPostgresOfFile();

test("a store with fewer connections than it needs uses those that it gets", async () => {
  const ids = Array.from({ length: 4 }, (_, i) => BigInt(i + 1));
  const admin = await server.createPlants(ids);
  // Superusers have no limit.
  await runSql(
    admin,
    `CREATE ROLE gardener LOGIN CONNECTION LIMIT 1;
     DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO gardener', current_schema()); END $$;
     GRANT SELECT, INSERT, UPDATE, DELETE ON plants, deletions, plantstore_schema TO gardener`,
  );
  const store = await openPostgresStore({ url: admin.replace("user=tester", "user=gardener") });
  const outcomes = await Promise.allSettled(ids.map((id) => store.delete(id, deleteCall())));
  expect(outcomes).toContainEqual({ status: "fulfilled", value: true });
  expect(store.problem).toBeUndefined();
  await store.close();
});
