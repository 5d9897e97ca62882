/**
 * The gateway for servers with the Fetch API, such as Deno, Bun and workers.
 *
 * Neither this module nor the modules that it imports load a node module, so it runs on every platform with the web
 * APIs.
 */
export type { FetchGateway } from "./create-fetch-gateway.ts";
export { createFetchHandler, type FetchContext, type FetchHandler } from "./fetch-handler.ts";
