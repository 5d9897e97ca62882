/** HTTP without sockets: exchanges, the error identifiers, and option checks. Runs on every JavaScript platform. */
export * from "./errors/index.ts";
export * from "./exchange/index.ts";
export * from "./fetch/index.ts";
export * from "./options/index.ts";
// The entry `/node` also exports both types, but requires node's type definitions.
export type { Client, TrustedProxies } from "./trusted-proxies/index.ts";
