/**
 * Stores of plants: in memory, SQLite or PostgreSQL.
 *
 * The service calls a `PlantStore` (src/service/plant-store.ts), which resolves once the result is durable. Stores
 * group concurrent deletions into one commit, which is invisible to callers. This module does not depend on protocols,
 * credentials or the process; values from them are passed as arguments.
 */
export { StoreOpenError } from "./contract/store-open-error.ts";
export type { ImportCounts } from "./contract/plant-database.ts";
export { importPlants } from "./records/import-plants.ts";
export { type MoveCounts, movePlants } from "./records/move-plants.ts";
export { openMemoryStore } from "./queue/memory-store.ts";
export type { PlantDatabase } from "./contract/plant-database.ts";
export {
  checkPlantStore,
  migratePlants,
  openLockedStore,
  openPlantDatabase,
  openPlantStore,
  type PlantLocation,
  type PostgresLocation,
} from "./plant-location.ts";
export type { OnBatch } from "./contract/durable-store-options.ts";
export { parseId } from "./records/read-ids.ts";
export { backUp } from "./sqlite/backup.ts";
export { restore } from "./sqlite/restore.ts";
export type { OnUpkeep, Upkeep } from "./contract/upkeep.ts";
export type { IdRange } from "./sqlite/migrate.ts";
export { assertSameDatabase } from "./postgres/server/follow-server-url.ts";
export { pemBytesMax } from "./postgres/server/certificate-files.ts";
export { readServerUrl } from "./postgres/server/server-url.ts";
export { openSqliteStore } from "./sqlite/sqlite-store.ts";
