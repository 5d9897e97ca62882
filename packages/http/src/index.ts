/** HTTP without sockets: exchanges, the error identifiers, and option checks. Runs on every JavaScript platform. */
export * from "./errors/index.ts";
export * from "./exchange/index.ts";
export * from "./fetch/index.ts";
export * from "./options/index.ts";
// Of the entry `/node`, whose other types need those of node.
export type { Client, TrustedProxies } from "./trusted-proxies/index.ts";
