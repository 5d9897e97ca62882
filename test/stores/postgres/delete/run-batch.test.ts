import { expect, test, vi } from "vitest";
import type { Placement } from "../../../../src/stores/postgres/delete/placement.ts";
import { singleServer } from "../../../../src/stores/postgres/delete/single-server.ts";
import { readServerUrl } from "../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../src/stores/postgres/server/session.ts";
import { callersOf, failToDefer, runBatchAt } from "../../../support/plants/run-batch.ts";
import { schemaOf } from "../../../support/plants/schema-of.ts";

test("a plant deleted by a lost attempt counts as deleted after a deadlock", async () => {
  const session = new Session(readServerUrl("postgres://tester@127.0.0.1/plants"));
  vi.spyOn(session, "connect").mockResolvedValue();
  const deadlock = Object.assign(new Error("deadlock detected"), { code: "40P01", severity: "ERROR" });
  const placement: Placement = {
    ...singleServer(schemaOf(session)),
    deletePlants: () => Promise.reject(new Error("the connection was lost")),
    deleteUnlockedPlants: vi.fn(async () => new Map()).mockRejectedValueOnce(deadlock),
    findPlants: async () => [],
    // The record of the lost attempt: its plant and its key.
    runLookup: async () => [["1", null]],
  };
  const outcomes = runBatchAt(session, callersOf(1n), { defer: failToDefer, placement });
  await expect(outcomes).resolves.toEqual([true]);
});
