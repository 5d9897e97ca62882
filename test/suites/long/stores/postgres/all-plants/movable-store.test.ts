import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import type { MovableStore } from "../../../../../../src/stores/contract/movable-store.ts";
import { movePlants, type PlantLocation } from "../../../../../../src/stores/index.ts";
import { createTempFolder } from "@protoport/testing/process";
// oxfmt-ignore
import { batchSizesOf, createUsedStore, deleteFrom, kindsOf, move, plantsOf, recordsOf, urlOf, withMovable
} from "../../../../../support/plants/moved-stores.ts";
import { runSql, startPostgresOfFile } from "../../../../../support/plants/index.ts";

const server = await startPostgresOfFile();
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const { sqlite, postgres } = kindsOf(folder, server);

// Moves to SQLite with such triggers are tested in test/stores/records.
test.each([
  ["record", "deletions", "plant_id"],
  ["plant", "plants", "id"],
])("a move changes nothing if a trigger drops a PostgreSQL %s", async (_name, table, column) => {
  const [source, target] = [await createUsedStore(sqlite), await postgres.create()];
  const sql = `CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RETURN CASE WHEN NEW.${column} = 3 THEN NULL ELSE NEW END; END $$;
     CREATE TRIGGER skip BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION skip()`;
  await postgres.run(target, sql);
  await expect(move(source, target)).rejects.toThrow(/ keys, expected 4 plants, 3 .* and 1 .* keys; nothing was moved/);
  expect([await plantsOf(target), await recordsOf(target)]).toEqual([[], []]);
});

test("a slow target does not trigger the source role's idle timeout", async () => {
  const owner = urlOf(await createUsedStore(postgres));
  const limit = "idle_in_transaction_session_timeout = '1s'";
  await runSql(owner, `CREATE ROLE hasty SUPERUSER LOGIN; ALTER ROLE hasty SET ${limit}`);
  const hasty: PlantLocation = { kind: "postgres", url: owner.replace("user=tester", "user=hasty") };
  const moving = withMovable(hasty, await sqlite.create(), (reading, target) => {
    const insertPlants: MovableStore["insertPlants"] = async (ids) => {
      await sleep(1_500);
      await target.insertPlants(ids);
    };
    return movePlants(reading, { ...target, insertPlants });
  });
  await expect(moving).resolves.toEqual({ plants: 4, records: 3, keys: 1 });
});

test("a move fails when row security hides source rows", async () => {
  const owner = urlOf(await createUsedStore(postgres));
  const sql = `CREATE ROLE mover LOGIN; GRANT ALL ON SCHEMA ${/plants_\d+/.exec(owner)?.[0]} TO mover;
     GRANT ALL ON plants, deletions, plantstore_schema TO mover;
     ALTER TABLE plants OWNER TO mover; ALTER TABLE plants FORCE ROW LEVEL SECURITY;
     ALTER TABLE plants ENABLE ROW LEVEL SECURITY; CREATE POLICY hide_first ON plants USING (id > 1)`;
  await runSql(owner, sql);
  const hidden: PlantLocation = { kind: "postgres", url: owner.replace("user=tester", "user=mover") };
  await expect(move(hidden, await sqlite.create())).rejects.toThrow(/row security may hide rows of the table plants/);
  await runSql(owner, "ALTER TABLE plants DISABLE ROW LEVEL SECURITY");
  await expect(move(hidden, await sqlite.create())).resolves.toMatchObject({ plants: 4 });
});

test.each([
  { name: "an unlogged table", sql: "ALTER TABLE plants SET UNLOGGED", problem: /the table plants is unlogged/ },
  {
    name: "a rule",
    sql: "CREATE RULE kept AS ON DELETE TO plants DO INSTEAD NOTHING",
    problem: /the rule kept replaces statements on the table plants/,
  },
])("a move from a database with $name succeeds, and a move to it fails", async ({ sql, problem }) => {
  const [source, target, other] = [await createUsedStore(postgres), await postgres.create(), await sqlite.create()];
  for (const store of [source, target]) await runSql(urlOf(store), sql);
  await expect(move(source, target)).rejects.toThrow(problem);
  await expect(move(source, other)).resolves.toMatchObject({ plants: 4 });
});

test("a server continues the batch numbers after a move", async () => {
  const [source, target] = [await createUsedStore(postgres), await sqlite.create()];
  await move(source, target);
  await deleteFrom(target, [1n], [3n]);
  expect(await batchSizesOf(target)).toEqual([1, 1, 1, 1, 1]);
});
