import { ConnectError } from "@connectrpc/connect";
import type { ErrorWriter } from "./error-writer.ts";
import type { Protocol } from "./admit.ts";
import { refuseConnect } from "./connect-unary.ts";
import type { Exchange } from "./exchange.ts";
import { refuseGrpc } from "./grpc-unary.ts";
import { refuseGrpcWeb } from "./grpc-web-unary.ts";
import { type HeaderFields, readField } from "./header-fields.ts";
import { metadataFields } from "./metadata-fields.ts";

/** An answer to a request that never became a call. */
export interface Refusal {
  readonly protocol: Protocol;
  /** The library's own HTTP status for it; gRPC and gRPC-Web answer 200 with a status of their own. */
  readonly httpStatus: number;
  readonly error: ConnectError;
  /** The RPC that was asked for, if it is known. */
  readonly procedure: string | undefined;
  readonly fields: HeaderFields;
}

/** Answers with a refusal in the form that the caller's protocol has for it. */
export function refuse(exchange: Exchange, refusal: Refusal, writeErrorRecord: ErrorWriter): void {
  const { protocol, httpStatus, fields, procedure } = refusal;
  const error = wellFormed(refusal.error);
  // A wrong method or media type on an RPC's path is a mistake before any protocol: gRPC names a bare 415 for
  // the latter, and Connect's clients go by the status alone.
  const rpcMistake = procedure !== undefined && (httpStatus === 405 || httpStatus === 415);
  if (rpcMistake && (protocol !== "rest" || writeErrorRecord.isDefault)) {
    return exchange.answer(httpStatus, [...fields, ...metadataFields(error)], new Uint8Array(0));
  }
  const contentType = readField(exchange.fields, "content-type") ?? "";
  if (protocol === "grpc") return refuseGrpc(exchange, grpcContentType(contentType), error);
  if (protocol === "grpc-web") return refuseGrpcWeb(exchange, grpcContentType(contentType), error);
  if (protocol === "connect") return refuseConnect(exchange, httpStatus, error, fields);
  const record = writeErrorRecord(error, { httpStatus, procedure });
  const head = ["content-type", record.contentType, ...fields, ...metadataFields(error)];
  exchange.answer(record.httpStatus, head, record.body);
}

/** An error whose message can be encoded for every protocol, whatever text it was made of. */
export function wellFormed(error: ConnectError): ConnectError {
  if (error.rawMessage.isWellFormed()) return error;
  return new ConnectError(error.rawMessage.toWellFormed(), error.code, error.metadata, [], error.cause);
}

// What is echoed of the client's own content type is what is known to be one.
function grpcContentType(sent: string): string {
  const [type = ""] = sent.toLowerCase().split(";");
  return /^application\/grpc(-web(-text)?)?(\+(proto|json))?$/.test(type) ? type : "application/grpc";
}
