import type { ConnectError } from "@connectrpc/connect";
import type { HeaderFields } from "../../http/index.ts";
import { isSendable, LazyHeaders, toFields } from "../lazy-headers.ts";

/** Returns an error's metadata as header fields, without protocol fields. */
export function metadataFields(error: ConnectError): HeaderFields {
  return toFields(customMetadata(error));
}

/** Returns an error's metadata without protocol fields. */
export function customMetadata(error: ConnectError): Headers {
  const metadata = new Headers();
  appendCustomMetadata(metadata, error);
  return metadata;
}

/** Appends {@link customMetadata} to a header or trailer. */
export function appendCustomMetadata(into: Headers, error: ConnectError): void {
  // Metadata from another server describes the call to that server. Before 2.2, Connect errors have no `isWireError`. A
  // received error's metadata then includes the response header, and thus a content type.
  const { metadata } = error;
  if ("isWireError" in error ? error.isWireError : metadata.has("content-type")) return;
  metadata.forEach((value, name) => {
    if (!protocolFields.has(name) && isSendable(name, value)) into.append(name, value);
  });
}

/**
 * Returns a copy of an error without metadata, because some Connect functions would also write the metadata.
 *
 * @param rawMessage - replaces the error's message
 */
export function withoutMetadata(error: ConnectError, rawMessage: string = error.rawMessage): ConnectError {
  return Object.create(error, { metadata: { value: noMetadata }, rawMessage: { value: rawMessage } });
}

const noMetadata = new LazyHeaders([]);

// The HTTP, Connect and gRPC fields that Connect's servers omit from an error's metadata. `isSendable` excludes
// additional fields. Connect exports no list of these fields before 2.2.
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
