/**
 * The plant store as a library: embed the server, bring a store and a verifier of your own or take
 * those that are here. The gateway alone is `@plantstore/gateway`, a Node client `plantstore/client`.
 */
export { openTokenVerifier, parsePlainTokens, type TokenVerifier } from "@plantstore/auth";
export { openLog } from "@plantstore/telemetry/logs";
export { openMemoryStore, openPlantStore, openSqliteStore } from "./stores/index.ts";
export {
  type DeleteCall,
  type PlantErrorCode,
  type PlantParts,
  type PlantServing,
  type PlantStore,
  servePlants,
  type WaitingDeletions,
} from "./service/index.ts";
export { createPlantServer, type PlantServer, type PlantServerOptions } from "./server/index.ts";
