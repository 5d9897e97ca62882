/**
 * A protocol's name in hooks, logs and metrics. Code outside the protocols' folders that differs per protocol uses a
 * `Record<ProtocolName, …>`, so that it does not compile until a new protocol is added to it.
 */
export type ProtocolName = "connect" | "grpc" | "grpc-web" | "mcp" | "rest";
