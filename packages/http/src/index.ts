/** HTTP without sockets: exchanges, the identifiers of errors, and checks of options. Runs on every JavaScript platform. */
export * from "./errors/index.ts";
export * from "./exchange/index.ts";
export * from "./fetch/index.ts";
export * from "./options/index.ts";
