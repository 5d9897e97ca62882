import type { ConnectError } from "@connectrpc/connect";
import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import type { HeaderFields } from "../../http/index.ts";
import { metadataFields } from "../shared/error-metadata.ts";

/**
 * Returns an error as a unary response's header and body ("Error" in the specification).
 *
 * @param header - other response header fields
 */
export function unaryError(
  error: ConnectError,
  header: HeaderFields,
  jsonOptions: Parameters<typeof errorToJsonBytes>[1],
): { readonly fields: HeaderFields; readonly body: Uint8Array } {
  return { fields: [...header, ...metadataFields(error)], body: errorToJsonBytes(error, jsonOptions) };
}
