import type { ConnectError } from "@connectrpc/connect";
import type { HeaderFields } from "../../exchange/index.ts";
import { isSendable, LazyHeaders, toFields } from "./lazy-headers.ts";

/** Returns the metadata of an error as header fields, without those that belong to the protocol itself. */
export function metadataFields(error: ConnectError): HeaderFields {
  return toFields(ownMetadata(error));
}

/** Returns the metadata of an error, without those that belong to the protocol itself. */
export function ownMetadata(error: ConnectError): Headers {
  const metadata = new Headers();
  appendOwnMetadata(metadata, error);
  return metadata;
}

/** Appends {@link ownMetadata} to a header or trailer. */
export function appendOwnMetadata(into: Headers, error: ConnectError): void {
  // Metadata received from another server describes that call, not ours. Before Connect 2.2, errors do not say where
  // they are from, but their metadata then includes the header of the answer.
  const { metadata } = error;
  if ("isWireError" in error ? error.isWireError : metadata.has("content-type")) return;
  metadata.forEach((value, name) => {
    if (!protocolFields.has(name) && isSendable(name, value)) into.append(name, value);
  });
}

/**
 * Returns an error as it is but without metadata, for functions of Connect that would write them: each minor version
 * writes others.
 */
export function withoutMetadata(error: ConnectError): ConnectError {
  return Object.create(error, { metadata: { value: noMetadata } });
}

const noMetadata = new LazyHeaders([]);

// What Connect's own servers leave out, of HTTP, Connect and gRPC, besides what is never sent with a call. Before Connect
// 2.2 there was no such list.
const protocolFields: ReadonlySet<string> = new Set([
  "accept-encoding",
  "content-encoding",
  "content-type",
  "host",
  "user-agent",
  "connect-accept-encoding",
  "connect-content-encoding",
  "connect-protocol-version",
  "connect-timeout-ms",
  "grpc-accept-encoding",
  "grpc-encoding",
  "grpc-message",
  "grpc-status",
  "grpc-status-details-bin",
  "grpc-timeout",
  "trailer-",
]);
