import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { deleteCall, runSql, startPostgresOfFile } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();

test("an overloaded store refuses deletions quickly, and does not perform them", async () => {
  const url = await server.createPlants();
  const sql = `INSERT INTO plants SELECT generate_series(1, 6000);
     CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM pg_sleep((SELECT count(*) FROM gone) * 0.004); RETURN NULL; END $$;
     CREATE TRIGGER hold AFTER DELETE ON plants REFERENCING OLD TABLE AS gone EXECUTE FUNCTION hold()`;
  await runSql(url, sql);
  const store = await openPostgresStore({ url });
  const outcomes: Promise<string>[] = [];
  const refusals: string[] = [];
  const ask = (): void => {
    const deletion = store.delete(BigInt(outcomes.length + 1), deleteCall());
    const refuse = ({ errorCode }: { readonly errorCode: string }): string => {
      refusals.push(errorCode);
      return errorCode;
    };
    outcomes.push(deletion.then(String, refuse));
  };
  // Two connections need at least six seconds for these deletions.
  for (let i = 0; i < 3_000; i++) ask();
  while (refusals.length === 0) {
    ask();
    await sleep(20);
  }
  await store.close();
  const settled = await Promise.all(outcomes);
  expect(new Set(settled)).toEqual(new Set(["true", "ERR_QUEUE_FULL"]));
  const refused = settled.flatMap((outcome, i) => (outcome === "true" ? [] : [String(i + 1)]));
  const rest = await runSql(url, `SELECT id FROM plants WHERE id <= ${settled.length} ORDER BY id`);
  expect(rest.map(({ id }) => String(id))).toEqual(refused);
}, 40_000);
