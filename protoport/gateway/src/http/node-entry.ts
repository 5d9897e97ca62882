/** The entry `/node` contains all code that requires node, which the gateway over Fetch must not load. */
export * from "./node/index.ts";
export * from "./trusted-proxies/index.ts";
