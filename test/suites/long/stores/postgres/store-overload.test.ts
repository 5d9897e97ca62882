import { expect, test } from "vitest";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import type { OnBatch } from "../../../../../src/stores/index.ts";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import { runSql } from "../../../../support/plants/postgres-server.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

test("an overloaded store refuses deletions quickly, and does not perform them", async () => {
  const url = await server.createPlants();
  await runSql(
    url,
    `INSERT INTO plants SELECT generate_series(1, 6000);
     CREATE TABLE held AS SELECT 0 AS ms;
     CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM pg_sleep((SELECT count(*) FROM gone) * (SELECT ms FROM held) / 1000.0); RETURN NULL; END $$;
     CREATE TRIGGER hold AFTER DELETE ON plants REFERENCING OLD TABLE AS gone EXECUTE FUNCTION hold()`,
  );
  const outcomes: Promise<string>[] = [];
  const ask = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const deletion = store.delete(BigInt(outcomes.length + 1), deleteCall());
      outcomes.push(deletion.then(String, ({ errorCode }) => errorCode));
    }
  };
  let isLoaded = false;
  // Sends six deletions per committed deletion, so that the load does not depend on the machine's speed.
  const onBatch: OnBatch = (calls) => () => {
    if (isLoaded && outcomes.length < 3_000) ask(6 * calls.length);
  };
  const store = await openPostgresStore({ url, onBatch });
  for (let times = 0; times < 4; times++) {
    ask(200);
    await Promise.all(outcomes);
  }
  await runSql(url, "UPDATE held SET ms = 4");
  isLoaded = true;
  ask(2);
  await expect.poll(() => outcomes.length, { timeout: 20_000 }).toBeGreaterThan(3_000);
  await store.close();
  const settled = await Promise.all(outcomes);
  expect(new Set(settled)).toEqual(new Set(["true", "ERR_QUEUE_FULL"]));
  expect(settled.filter((outcome) => outcome === "true").length).toBeLessThan(2_000);
  const refused = settled.flatMap((outcome, i) => (outcome === "true" ? [] : [String(i + 1)]));
  const rest = await runSql(url, `SELECT id FROM plants WHERE id <= ${settled.length} ORDER BY id`);
  expect(rest.map(({ id }) => String(id))).toEqual(refused);
}, 40_000);
