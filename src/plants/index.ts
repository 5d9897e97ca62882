/**
 * What happened to the plant?
 *
 * The service asks a {@link PlantStore}, and a store answers once its answer is durable. Stores group
 * concurrent deletions into one commit; no caller knows. This room knows ids and who deletes them, and
 * nothing of protocols, credentials or the process around it: what it needs of those is handed in.
 */
export { StoreOpenError } from "./errors.ts";
export { openMemoryStore } from "./memory-store.ts";
export { createPlantService } from "./plant-service.ts";
export type { DeleteCall, PlantStore } from "./plant-store.ts";
export { openSqliteStore } from "./sqlite/store.ts";
