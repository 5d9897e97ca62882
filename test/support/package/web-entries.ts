/** The package entries that need nothing from Node, as docs/how-to/packages.md lists them. */
export const webEntries: readonly string[] = [
  "@plantstore/gateway/exchange",
  "@plantstore/gateway/fetch",
  "@plantstore/gateway/health",
  "@plantstore/gateway/mcp",
  "@plantstore/gateway/options",
  "@plantstore/gateway/reflection",
  "@plantstore/gateway/rest",
  "@plantstore/gateway/validation",
  "@plantstore/rest-client",
  "@plantstore/telemetry/opentelemetry",
  "plantstore/connect",
];
