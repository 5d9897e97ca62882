/** The package entries that need nothing from Node, as protoport/docs/how-to/packages.md lists them. */
// oxfmt-ignore
export const webEntries: readonly string[] = [
  "@protoport/gateway/errors", "@protoport/gateway/exchange", "@protoport/gateway/fetch", "@protoport/gateway/health",
  "@protoport/gateway/mcp", "@protoport/gateway/messages", "@protoport/gateway/options",
  "@protoport/gateway/reflection", "@protoport/gateway/rest", "@protoport/gateway/validation", "@protoport/rest-client",
  "@protoport/telemetry/opentelemetry",
];
