import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";
import { addPlants, plantsIn, runSqlite } from "../../support/plants/sqlite-file.ts";

describePlantStore(async (plants) => {
  const folder = createTempFolder();
  const file = folder.file("plants.db");
  const store = await openSqliteStore({ file, migrates: true });
  addPlants(file, plants);
  const run = (sql: string): void => runSqlite(file, sql);
  return {
    store,
    plants: () => plantsIn(file),
    reopen: () => openSqliteStore({ file }),
    database: {
      location: { kind: "sqlite", path: file },
      kill: async () => undefined,
      run,
      failDeletions: () => run("CREATE TRIGGER fail AFTER DELETE ON plants BEGIN SELECT json('no JSON'); END"),
    },
    [Symbol.asyncDispose]: async () => {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
});
