/**
 * What does a program see where servers use the interfaces of Fetch?
 *
 * The gateway for Deno, Bun and workers. Neither this room nor the rooms that it imports load a module of node's, so it
 * runs wherever the web's interfaces exist.
 */
export type { FetchGateway } from "./create-fetch-gateway.ts";
export { createFetchHandler, type FetchContext, type FetchHandler } from "./fetch-handler.ts";
