import type { Distribution } from "../postgres/distribution.ts";
import { distribute, refuseDistributedSchema } from "./distribute.ts";
import { CitusWorkers } from "./workers.ts";

/** The Citus extension. */
export const citus: Distribution = {
  createWorkers: () => new CitusWorkers(),
  checkSchema: refuseDistributedSchema,
  distribute,
};
