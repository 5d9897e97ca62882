import { expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import type { Upkeep } from "../../../../../src/stores/contract/store-options.ts";
import { deleteApart, deleteCall, runSql, startPostgresOfFile } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();

test("a store logs a low connection limit once, and uses fewer connections", async () => {
  const ids = Array.from({ length: 200 }, (_, i) => BigInt(i + 1));
  const admin = await server.createPlants(ids);
  // Superusers have no limit.
  const sql = `CREATE ROLE gardener LOGIN CONNECTION LIMIT 1;
     DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO gardener', current_schema()); END $$;
     GRANT SELECT, INSERT, UPDATE, DELETE ON plants, deletions, plantstore_schema TO gardener`;
  await runSql(admin, sql);
  const events: Upkeep[] = [];
  const url = admin.replace("user=tester", "user=gardener");
  await using store = closing(await openPostgresStore({ url, onUpkeep: (event) => void events.push(event) }));
  const refusals = (): Upkeep[] => events.filter(({ kind }) => kind === "connections-refused");
  let deleted = 0;
  const deleteOn = async (own: readonly bigint[]): Promise<void> => {
    for (const id of own) {
      if (refusals().length > 0) return;
      const isDeleted = await store.delete(id, deleteCall()).catch(() => false);
      if (isDeleted) deleted++;
    }
  };
  // The first caller's batches are in flight next to the batches of the others.
  const callers = await deleteApart([0n, 1n, 2n, 3n], 1, (caller) => deleteOn(ids.filter((id) => id % 4n === caller)));
  await Promise.all(callers);
  expect(refusals()).toEqual([
    { kind: "connections-refused", lastedMs: expect.any(Number), problem: 'too many connections for role "gardener"' },
  ]);
  expect(deleted).toBeGreaterThan(0);
});
