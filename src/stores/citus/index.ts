export { citusTables } from "./citus-tables.ts";
export { distribute, refuseDistributedSchema } from "./distribute.ts";
export { findShards } from "./shards.ts";
