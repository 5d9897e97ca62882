/**
 * The plant store as a library: a server to embed, stores and a token verifier. You can also pass your own store and
 * verifier. The gateway is a separate package, `@protoport/gateway`. The client for Node is `plantstore/client`.
 */
export { openTokenVerifier, parsePlainTokens, type TokenVerifier } from "@protoport/auth";
export { openLog } from "@protoport/telemetry/logs";
export { openMemoryStore, openPlantStore, openSqliteStore } from "./stores/index.ts";
export {
  type DeleteCall,
  type PlantErrorCode,
  type PlantGatewayParts,
  type PlantGatewayOptions,
  type PlantStore,
  createPlantGatewayOptions,
  type WaitingDeletions,
} from "./service/index.ts";
export { createPlantServer, type PlantServer, type PlantServerOptions } from "./server/index.ts";
