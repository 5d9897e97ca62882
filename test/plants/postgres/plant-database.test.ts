import { afterAll, beforeAll } from "vitest";
import { migratePostgres, openPostgresDatabase } from "../../../src/plants/postgres/plant-database.ts";
import { openPostgresStore } from "../../../src/plants/postgres/store.ts";
import { describePlantDatabase } from "../../support/describe-plant-database.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

describePlantDatabase(async () => {
  const url = await server.createDatabase();
  await migratePostgres(url);
  const store = await openPostgresStore({ url });
  const database = await openPostgresDatabase(url);
  return {
    store,
    database,
    [Symbol.asyncDispose]: async () => {
      await database[Symbol.asyncDispose]();
      await store.close();
    },
  };
});
