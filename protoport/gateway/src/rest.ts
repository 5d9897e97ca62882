/** The entry `@protoport/gateway/rest`, which exports the REST rules without a server. */
export * from "./protocols/rest/rules/index.ts";
