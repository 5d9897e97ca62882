import type { Distribution } from "../distribution.ts";
import { distributeByDay } from "./by-day.ts";
import { citusPlacement } from "./citus-placement.ts";
import { isCitus, refuseDistributedSchema } from "./distribute.ts";
import { findShards } from "./shards.ts";
import { CitusWorkers } from "./workers.ts";

/** Citus. */
export const citus: Distribution = {
  createWorkers: (isDistributed) => new CitusWorkers(isDistributed),
  isInstalled: isCitus,
  find: async (session, schema) => {
    const shards = await findShards(session, schema);
    if (shards !== undefined) return { layout: shards, place: (isByDay) => citusPlacement(schema, shards, isByDay) };
    await refuseDistributedSchema(session, schema);
    return undefined;
  },
  checkSchema: refuseDistributedSchema,
  distribute: distributeByDay,
};
