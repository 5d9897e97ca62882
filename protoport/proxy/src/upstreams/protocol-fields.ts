import { isToken, fieldsNotForwarded } from "@protoport/gateway/exchange";

// Pseudo-header fields and gRPC fields. `grpc-trace-bin`, OpenCensus's trace context, is metadata.
const protocolPrefix = /^(?::|grpc-(?!trace-bin$))/;

/**
 * Returns whether a field describes a connection, a message or gRPC, so that only the protocol sets the field.
 *
 * @param name - in lower case
 */
export function isProtocolField(name: string): boolean {
  return fieldsNotForwarded.has(name) || protocolPrefix.test(name);
}

/** Returns whether a configuration can set a field. @param name - in lower case */
export function isSettable(name: string): boolean {
  return isToken(name) && !isProtocolField(name);
}
