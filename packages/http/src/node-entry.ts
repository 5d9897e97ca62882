/**
 * The entry `/node`: what needs node, which the gateway over Fetch must not load. Listeners, exchanges on node:http and
 * node:http2, and the clients behind trusted proxies.
 */
export * from "./listen/index.ts";
export * from "./node/index.ts";
export * from "./trusted-proxies/index.ts";
