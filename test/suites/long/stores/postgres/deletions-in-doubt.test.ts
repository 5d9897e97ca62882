import { expect, test } from "vitest";
import { endings } from "../../../../../src/stores/postgres/delete/deletion.ts";
import type { Placement } from "../../../../../src/stores/postgres/delete/placement.ts";
import { runBatch } from "../../../../../src/stores/postgres/delete/run-batch.ts";
import { singleServer } from "../../../../../src/stores/postgres/delete/single-server.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
import { callersOf, callerWith, failToDefer, plantsOf, runBatchWith } from "../../../../support/plants/run-batch.ts";
import { runSql } from "../../../../support/plants/postgres-server.ts";
import { schemaOf } from "../../../../support/plants/schema-of.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

async function openPlants(change: (url: string) => Partial<Placement>) {
  const url = await server.createPlants([7n]);
  const session = new Session(readServerUrl(url));
  session.deadlineMs = performance.now() + 10_000;
  const placement = { ...singleServer(schemaOf(session)), ...change(url) };
  return { url, session, placement, [Symbol.asyncDispose]: () => session.close() };
}

/**
 * Loses the connection before the first statement reaches the server. Each later attempt runs SQL before and after the
 * statement. The first key lookup precedes both.
 */
function doubtful(url: string, before: string, after?: string): Partial<Placement> {
  return {
    deletePlants: () => Promise.reject(new Error("lost")),
    deleteUnlockedPlants: async (session, batch) => {
      await runSql(url, before);
      const outcomes = await singleServer(schemaOf(session)).deleteUnlockedPlants(session, batch);
      if (after !== undefined) await runSql(url, after);
      return outcomes;
    },
  };
}

const useKeySql = (plant: number): string => `
  INSERT INTO deletions (plant_id, subject, request_id, batch, idempotency_key)
  VALUES (${plant}, 'tester', '', gen_random_uuid(), 'used')`;

test.each([
  { plant: 8, ending: "key-reused" },
  { plant: 7, ending: "deleted" },
])("plant 7's deletion in doubt ends as $ending if plant $plant used its key", async ({ plant, ending }) => {
  await using opened = await openPlants((url) => doubtful(url, useKeySql(plant)));
  const deletion = callerWith(7n, "used");
  await runBatch(opened.session, [deletion], opened);
  expect(deletion.ending?.outcome).toBe(ending);
  expect(await plantsOf(opened.url)).toEqual(["7"]);
});

test("a deletion stays in doubt if its key's other record was dropped", async () => {
  await using opened = await openPlants((url) => doubtful(url, useKeySql(8), "DELETE FROM deletions"));
  const deletion = callerWith(7n, "used");
  await runBatch(opened.session, [deletion], opened);
  expect(deletion).toMatchObject({ isDeferred: true, token: expect.any(String) });
  await expect(runBatchWith(opened.session, [deletion], { defer: failToDefer })).resolves.toEqual([true]);
  expect(await plantsOf(opened.url)).toEqual([]);
});

test("an attempt that settles a deletion twice is not repeated", async () => {
  let attempts = 0;
  await using opened = await openPlants(() => ({
    deletePlants: async (_session, { firstDeletions }) => {
      attempts++;
      for (const one of [...firstDeletions.values(), ...firstDeletions.values()]) one.end(endings.deleted);
      return [];
    },
  }));
  const begunMs = performance.now();
  await expect(runBatch(opened.session, callersOf(7n), opened)).rejects.toMatchObject({ name: "TransitionError" });
  expect(attempts).toBe(1);
  expect(performance.now() - begunMs).toBeLessThan(5_000);
});
