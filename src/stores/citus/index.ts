import type { Distribution } from "../postgres/distribution.ts";
import { distributeByDay } from "./by-day.ts";
import { isCitus, refuseDistributedSchema } from "./distribute.ts";
import { CitusWorkers } from "./workers.ts";

/** Citus. */
export const citus: Distribution = {
  createWorkers: (onUpkeep) => new CitusWorkers(onUpkeep),
  isInstalled: isCitus,
  checkSchema: refuseDistributedSchema,
  distribute: distributeByDay,
};
