export { citusPlacement } from "./citus-placement.ts";
export { distribute, refuseDistributedSchema } from "./distribute.ts";
export { CitusWorkers } from "./workers.ts";
