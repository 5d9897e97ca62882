import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { readHeaderField } from "@plantstore/gateway/exchange";
import type { ResponseSection } from "@plantstore/http-engine/client";
import { codeOfHttpStatus } from "./call-status.ts";

/** How the messages of an answer are compressed; `undefined` if they are not. */
export type AnswerCoding = Compression | undefined;

/**
 * Reads the head of an answer.
 *
 * @returns how its messages are compressed, or why it is no answer of gRPC. What it says instead is never shown
 */
export function readAnswerHead(
  { fields, httpStatus }: ResponseSection,
  accepted: readonly Compression[],
): AnswerCoding | ConnectError {
  const contentType = readHeaderField(fields, "content-type") ?? "";
  const isGrpc = grpcType.test(contentType);
  // The mapping is for answers without a grpc-status alone.
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
  return coding ?? new ConnectError("the messages are compressed in an unknown way", Code.Internal);
}

// gRPC over HTTP/2, "Content-Type"; parameters are ignored.
const grpcType = /^application\/grpc(?:\+proto)?\s*(?:;|$)/i;
