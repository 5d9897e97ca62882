/**
 * How do the parts fit?
 *
 * The only room in which the others meet: settings become a configuration, a configuration becomes a
 * store, a verifier and a log, and {@link createPlantServer} makes one server of them. It decides the
 * plant store's policy (which status, which scope, which addresses) and does no work of its own.
 */
export { issueToken } from "../auth/index.ts";
export { describePlantStore } from "./open-api.ts";
export { openLog } from "../operations/log.ts";
export { backUp, importPlants, type ImportProgress, migratePlants, openPlantDatabase } from "../plants/index.ts";
export { ConfigurationError } from "./configuration-error.ts";
export { readConfiguration, type ConfigurationReading } from "./configuration.ts";
export { createPlantServer, type PlantServer } from "./create-plant-server.ts";
export { plantLocationOf } from "./database-url.ts";
export type { PlantServerOptions } from "./plant-server-options.ts";
export type { Setting } from "./setting.ts";
export { type Configuration, settings } from "./settings.ts";
export { startServer, type StartedServer, type StartOptions } from "./start-server.ts";
