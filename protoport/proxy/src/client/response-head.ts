import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { readHeaderField } from "@protoport/gateway/exchange";
import type { ResponseSection } from "@protoport/gateway/http2-client";
import { codeOfHttpStatus } from "./call-status.ts";

/** The compression for response messages, or `undefined` if messages are not compressed. */
export type ResponseCoding = Compression | undefined;

/**
 * Reads a response's header section.
 *
 * @returns the messages' compression, or an error if the response is not gRPC. The error never contains header values
 */
export function readResponseHead(
  { fields, httpStatus }: ResponseSection,
  accepted: readonly Compression[],
): ResponseCoding | ConnectError {
  const contentType = readHeaderField(fields, "content-type") ?? "";
  const isGrpc = grpcType.test(contentType);
  // The mapping from HTTP status codes applies only to responses without a grpc-status.
  if (httpStatus !== 200 && !(isGrpc && readHeaderField(fields, "grpc-status") !== null)) {
    return new ConnectError(`HTTP ${httpStatus}`, codeOfHttpStatus(httpStatus));
  }
  if (!isGrpc) {
    const isOtherFormat = /^application\/grpc\b/i.test(contentType);
    return new ConnectError("the content type is not application/grpc", isOtherFormat ? Code.Internal : Code.Unknown);
  }
  const name = readHeaderField(fields, "grpc-encoding")?.toLowerCase() ?? "identity";
  if (name === "identity") return undefined;
  const coding = accepted.find((compression) => compression.name === name);
  return coding ?? new ConnectError("the grpc-encoding of the response is not supported", Code.Internal);
}

// gRPC over HTTP/2, "Content-Type". Media type parameters are ignored.
const grpcType = /^application\/grpc(?:\+proto)?\s*(?:;|$)/i;
