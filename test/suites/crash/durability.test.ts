import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openSqliteStore } from "../../../src/stores/index.ts";
import { startChildServer, type ChildServer } from "../../support/process/child-server.ts";
import { exchangeHttp1 } from "@protoport/testing/http";
import { closing, createTempFolder, type TempFolder } from "@protoport/testing/process";
import { authorized } from "../../support/server/plant-server.ts";

/** How often the server is killed, each time right after a response. */
const kills = 5;

describe("an acknowledged deletion", () => {
  let folder: TempFolder;
  let database: string;
  beforeEach(async () => {
    folder = createTempFolder();
    database = folder.file("plants.db");
    await using _ = closing(await openSqliteStore({ file: database, plantsWhenCreated: { first: 1n, last: 10n } }));
  });
  afterEach(() => folder[Symbol.dispose]());

  test("survives a restart, and the other plants still exist", async () => {
    await using first = await startChildServer(database);
    expect(await deletePlant(first, 3n)).toBe(204);
    expect(await first.stop("SIGTERM")).toBe(0);

    await using second = await startChildServer(database);
    expect(await deletePlant(second, 3n)).toBe(400);
    expect(await deletePlant(second, 4n)).toBe(204);
  });

  test("survives a SIGKILL immediately after the response", async () => {
    for (let id = 1n; id <= kills; id += 1n) {
      await using server = await startChildServer(database);
      if (id > 1n) expect(await deletePlant(server, id - 1n)).toBe(400);
      expect(await deletePlant(server, id)).toBe(204);
      expect(await server.stop("SIGKILL")).toBeNull();
    }
    await using last = await startChildServer(database);
    expect(await deletePlant(last, BigInt(kills))).toBe(400);
    expect(await deletePlant(last, BigInt(kills) + 1n)).toBe(204);
  });
});

async function deletePlant(server: ChildServer, id: bigint): Promise<number> {
  const request = { httpMethod: "DELETE", path: `/plants/${String(id)}`, header: [authorized] };
  return (await exchangeHttp1(server.address, request)).httpStatus;
}
