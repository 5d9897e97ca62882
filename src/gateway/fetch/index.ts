/**
 * Which `Request` and `Response` are one exchange?
 *
 * The gateway where a server has the form of Fetch. Nothing here, nor in the rooms that it imports, loads a module of
 * node's, so that it runs wherever the web's interfaces are.
 */
export type { FetchGateway } from "./create-fetch-gateway.ts";
export { createFetchHandler, type FetchContext, type FetchHandler } from "./fetch-handler.ts";
