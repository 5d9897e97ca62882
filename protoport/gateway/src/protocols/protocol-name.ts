/**
 * A protocol's name in hooks, logs and metrics. Outside the protocols' folders, code that differs per protocol uses a
 * `Record<ProtocolName, …>`. A new protocol then causes compile errors until every record includes the protocol.
 */
export type ProtocolName = "connect" | "grpc" | "grpc-web" | "mcp" | "rest";
