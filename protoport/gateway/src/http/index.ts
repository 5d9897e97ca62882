/** HTTP without sockets: exchanges, the error identifiers, and option checks. Runs on every JavaScript platform. */
export * from "./problems.ts";
export * from "./exchange/index.ts";
export * from "./fetch-exchange.ts";
export * from "./option-checks.ts";
// The entry `/node` also exports both types, but requires node's type definitions.
export type { Client, TrustedProxies } from "./trusted-proxies/index.ts";
