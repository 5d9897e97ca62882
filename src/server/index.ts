/**
 * Combines the other modules into a server.
 *
 * Reads the settings into a configuration, opens the configured store, verifier and log, and passes all three to
 * {@link createPlantServer}.
 */
export { createPlantStoreOpenApi } from "./plant-store-open-api.ts";
export { checkConfiguration } from "./check-configuration.ts";
export { ConfigurationError } from "./configuration-error.ts";
export { type ConfigurationSources, readConfiguration, showConfiguration } from "./configuration.ts";
export { createPlantServer, type PlantServer } from "./create-plant-server.ts";
export { issuePlantToken } from "./plant-tokens.ts";
export { plantLocationOf } from "./database-url.ts";
export type { PlantServerOptions } from "./plant-server-options.ts";
export { defaultText, flagOf, type PlantSetting, socketPathOf } from "./setting-types.ts";
export { type Configuration, settingGroups, settings } from "./settings.ts";
export { serveAdmin, type ServerProblems } from "./admin-server.ts";
export { fetchServerReadiness, toConnectAddress } from "./server-readiness.ts";
export { startServer, type StartedServer, type StartOptions } from "./start-server.ts";
