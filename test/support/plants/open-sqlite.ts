import { vi } from "vitest";
import { createTempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import type { OpenWithDatabase, ProtectionSql } from "./opened-store.ts";
import { addPlants, ageRecords, plantsIn, recordedIn, runSqlite } from "./sqlite-file.ts";

const protectionSql: ProtectionSql = {
  "a reference in another table": (ids) =>
    `CREATE TABLE beds (plant INTEGER REFERENCES plants (id));
     INSERT INTO beds SELECT value FROM json_each('[${ids}]')`,
  "a trigger that refuses the deletion": (ids) =>
    `CREATE TRIGGER protect BEFORE DELETE ON plants WHEN OLD.id IN (${ids})
     BEGIN SELECT RAISE(ABORT, 'not this one'); END`,
  "a trigger that skips the deletion": (ids) =>
    `CREATE TRIGGER protect BEFORE DELETE ON plants WHEN OLD.id IN (${ids}) BEGIN SELECT RAISE(IGNORE); END`,
  "a trigger that skips the record": (ids) =>
    `CREATE TRIGGER protect BEFORE INSERT ON deletions WHEN NEW.plant_id IN (${ids})
     BEGIN SELECT RAISE(IGNORE); END`,
};

/** Returns `openSqliteStore` of another process, whose modules do not know the files that this process has open. */
export async function loadOtherProcess(): Promise<typeof openSqliteStore> {
  vi.resetModules();
  return (await import("../../../src/stores/sqlite/sqlite-store.ts")).openSqliteStore;
}

/** Opens a store in a file that has the given plants, and only those. */
export const openSqlite: OpenWithDatabase = async (plants) => {
  const folder = createTempFolder();
  const file = folder.file("plants.db");
  const store = await openSqliteStore({ file, migrates: true });
  addPlants(file, plants);
  const run = (sql: string): void => runSqlite(file, sql);
  return {
    store,
    plants: () => plantsIn(file),
    reopen: async (options) => (await loadOtherProcess())({ file, ...options }),
    // oxfmt-ignore
    database: {
      location: { kind: "sqlite", path: file }, kill: async () => undefined, run,
      failDeletions: () => run("CREATE TRIGGER fail AFTER DELETE ON plants BEGIN DELETE FROM missing; END"),
      protect: (way, ids) => run(protectionSql[way](ids.join())), recorded: () => recordedIn(file),
      age: (days) => ageRecords(file, days),
    },
    [Symbol.asyncDispose]: async () => {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
};
