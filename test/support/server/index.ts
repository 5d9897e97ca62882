/** Plant servers for tests, and requests to them. */
export * from "./ask-plant-server.ts";
export * from "./guarded-gateway.ts";
export * from "./plant-server.ts";
export * from "./server-pair.ts";
export * from "./start-configured.ts";
