/**
 * The entry `/node` contains all code that requires node, because the gateway over Fetch must not load such code. The
 * entry exports listeners, exchanges on node:http and node:http2, and trusted proxies.
 */
export * from "./listen/index.ts";
export * from "./node/index.ts";
export * from "./trusted-proxies/index.ts";
