import { describe } from "vitest";
import { openPostgresDatabase } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { testKilled } from "../../support/plants/describe-durable-store.ts";
import { describePlantDatabase } from "../../support/plants/describe-plant-database.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";
import { openStoreWith, startPostgresOfFile } from "../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

describePlantStore((plants) => openStoreWith(server, plants));

describePlantDatabase(async () => {
  const url = await server.createPlants();
  return { store: await openPostgresStore({ url }), database: await openPostgresDatabase(url) };
});

describe("a store whose URL sets synchronous_commit to off", () => {
  testKilled((plants) =>
    openStoreWith(server, plants, (url) => url.replace("options=", "options=-csynchronous_commit%3Doff%20")),
  );
});
