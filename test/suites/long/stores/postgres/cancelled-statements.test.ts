import { expect, test } from "vitest";
import { citusPlacement } from "../../../../../src/stores/citus/citus-placement.ts";
import { Shards } from "../../../../../src/stores/citus/shards.ts";
import type { Placement } from "../../../../../src/stores/postgres/delete/placement.ts";
import { runBatch } from "../../../../../src/stores/postgres/delete/run-batch.ts";
import { singleServer } from "../../../../../src/stores/postgres/delete/single-server.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";
import { callersOf } from "../../../../support/plants/run-batch.ts";
import { schemaOf } from "../../../../support/plants/schema-of.ts";

const server = await startPostgresOfFile();

const onWorkers = (session: Session): Placement => citusPlacement(schemaOf(session), new Shards([2 ** 31 - 1], [0]));

test.each([
  {
    name: "a single server",
    placementOf: (session: Session) => singleServer(schemaOf(session)),
    outcome: "unavailable",
  },
  { name: "workers", placementOf: onWorkers, outcome: "unknown" },
])("a batch on $name ends as $outcome when its statements are cancelled", async ({ placementOf, outcome }) => {
  const session = new Session(readServerUrl(await server.createPlants([7n])));
  session.deadlineMs = performance.now() + 1_200;
  const fault = Object.assign(new Error("cancelled"), { code: "57014", severity: "ERROR" });
  const cancelled = (): Promise<never> => Promise.reject(fault);
  const placement = { ...placementOf(session), deletePlants: cancelled, deleteUnlockedPlants: cancelled };
  await expect(runBatch(session, callersOf(7n), { placement })).rejects.toMatchObject({ ending: { outcome } });
  await session.close();
});
