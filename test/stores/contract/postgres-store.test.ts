import { describe, expect, test } from "vitest";
import { openPostgresDatabase } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { testKilled } from "../../support/plants/describe-durable-store.ts";
import { describePlantDatabase } from "../../support/plants/describe-plant-database.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";
import { openStoreWith, startPostgresOfFile } from "../../support/plants/postgres-of-file.ts";
import { startPostgresProxy } from "../../support/plants/postgres-proxy.ts";
import { messageOf } from "../../support/plants/server-message.ts";

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

test("a deletion whose response is lost after its commit counts as deleted", async () => {
  let isLost = false;
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    let isSent = false;
    client.on("data", (data: Buffer) => {
      isSent ||= data.includes("WITH deleted AS");
      upstream.write(data);
    });
    upstream.on("data", (data: Buffer) => {
      if (!isSent || isLost) return void client.write(data);
      isLost = true;
      client.destroy();
    });
  });
  const change = (url: string): string => url.replace(server.socketFolder, proxy.socketFolder);
  await using opened = await openStoreWith(server, [1n], change);
  await expect(opened.store.delete(1n, deleteCall())).resolves.toBe(true);
  expect(isLost).toBe(true);
  expect(await opened.plants()).toEqual([]);
});

test("a session stays usable after a commit that its standbys did not confirm", async () => {
  const unconfirmed = messageOf("N", "SWARNING\0VWARNING\0C01000\0Mm\0RSyncRepWaitForLSN\0\0");
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    client.on("data", (data: Buffer) => {
      if (data.includes("COMMIT")) client.write(unconfirmed);
      upstream.write(data);
    });
    upstream.pipe(client);
  });
  const url = await server.createSchema();
  const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
  await expect(session.run("BEGIN; COMMIT")).rejects.toThrow("not confirmed by its synchronous standbys");
  await expect(session.query("SELECT 1")).resolves.toEqual([["1"]]);
  await session.close();
});
