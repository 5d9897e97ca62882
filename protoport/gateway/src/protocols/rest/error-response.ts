import type { ConnectError } from "@connectrpc/connect";
import type { HeaderFields } from "../../http/index.ts";
import type { ErrorResponse, RestFailure } from "./rules/index.ts";
import { customMetadata } from "../shared/error-metadata.ts";
import { withResponseMetadata } from "./grpc-metadata.ts";
import { toRestHeader } from "./response-header.ts";

/** An error as a REST response. */
export interface RestErrorResponse {
  readonly httpStatus: number;
  readonly fields: HeaderFields;
  readonly body: Uint8Array;
}

/**
 * Returns an error as a REST response. The body is the error record, and the error's metadata are header fields.
 *
 * @param otherFields - further response header fields
 * @param usesGrpcMetadata - whether metadata is also sent as `Grpc-Metadata-Name`
 */
export function toErrorResponse(
  writeErrorRecord: (error: ConnectError, failure: RestFailure) => ErrorResponse,
  error: ConnectError,
  failure: RestFailure,
  otherFields: HeaderFields,
  usesGrpcMetadata: boolean,
): RestErrorResponse {
  const { httpStatus, contentType, body } = writeErrorRecord(error, failure);
  const metadata = toRestHeader(customMetadata(error));
  const metadataToSend = usesGrpcMetadata ? withResponseMetadata(metadata) : metadata;
  return { httpStatus, fields: ["content-type", contentType, ...otherFields, ...metadataToSend], body };
}
