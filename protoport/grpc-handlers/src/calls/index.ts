/**
 * Converts the gateway's calls to the call objects that grpc-js handlers get. Messages pass as bytes between the
 * gateway and a definition's `requestDeserialize` and `responseSerialize`.
 */
export { HandlerForwarder } from "./handler-forwarder.ts";
export type { AnyDefinition } from "./base-call.ts";
export type { AnyHandler, ServedMethod } from "./serve-call.ts";
export { findConverter, findEncode, type MessageTypes } from "./message-types.ts";
