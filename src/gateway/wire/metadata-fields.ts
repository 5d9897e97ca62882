import type { ConnectError } from "@connectrpc/connect";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import { type HeaderFields, toFields } from "./header-fields.ts";

/** The metadata of an error as header fields, without those that belong to the protocol itself. */
export function metadataFields(error: ConnectError): HeaderFields {
  // Metadata that came from another server are about that call, not ours.
  if (error.isWireError) return [];
  const fields = new Headers();
  mergeNonProtocolHeaders(fields, error.metadata);
  return toFields(fields);
}
