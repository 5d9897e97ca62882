/**
 * What does a program see where servers have the form of Fetch?
 *
 * The gateway for Deno, Bun and workers. Nothing here, nor in the rooms that it imports, loads a module of node's, so
 * that it runs wherever the web's interfaces are.
 */
export type { FetchGateway } from "./create-fetch-gateway.ts";
export { createFetchHandler, type FetchContext, type FetchHandler } from "./fetch-handler.ts";
