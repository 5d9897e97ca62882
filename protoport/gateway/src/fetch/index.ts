/**
 * The gateway for servers with the Fetch API, such as Deno, Bun and workers.
 *
 * This module and its imports load no node modules, so the module runs on every platform with the web APIs.
 */
export type { FetchGateway } from "./create-fetch-gateway.ts";
export { createFetchHandler, type FetchContext, type FetchHandler } from "./fetch-handler.ts";
