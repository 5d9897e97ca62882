import { expect, test } from "vitest";
import { openSqliteStore } from "../../src/plantstore/plants/index.ts";
import { openHttp1 } from "../support/carriers/http1-connection.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";

const callers = 64;
const deletionsEach = 10;

test("each of many callers that end their side behind a deletion is told of it", async () => {
  using folder = createTempFolder();
  const plantsWhenCreated = { first: 1n, last: BigInt(callers * deletionsEach) };
  const store = await openSqliteStore({ file: folder.file("plants.db"), plantsWhenCreated });
  await using server = await startPlantServer({ store });
  const statuses = new Map<number, number>();
  /** Deletes as `nc -N` would. */
  const remove = async (id: number): Promise<void> => {
    using connection = await openHttp1(server.address);
    connection.socket.end(
      `DELETE /plants/${String(id)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${tokens.good}\r\n\r\n`,
    );
    const { httpStatus } = await connection.readAnswer();
    expect(await connection.atEnd()).toBe(true);
    statuses.set(httpStatus, (statuses.get(httpStatus) ?? 0) + 1);
  };
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let i = 1; i <= deletionsEach; i++) await remove(caller * deletionsEach + i);
    }),
  );
  expect(statuses).toEqual(new Map([[204, callers * deletionsEach]]));
});
