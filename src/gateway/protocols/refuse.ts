import type { ConnectError } from "@connectrpc/connect";
import { type Exchange, type HeaderFields, noBytes } from "../carriers/index.ts";
import { curlHint, type ErrorRecordWriter } from "../rest/index.ts";
import type { Protocol } from "./call-protocol.ts";
import { refuseConnect, refuseConnectStream } from "./connect.ts";
import type { RpcFormat } from "./content-type.ts";
import { refuseGrpc } from "./grpc.ts";
import { refuseGrpcWeb } from "./grpc-web.ts";
import { restErrorHeader } from "./rest/response-header.ts";

/** An answer to a request that never became a call. */
export interface Refusal {
  readonly protocol: Protocol;
  /** Its HTTP status; gRPC and gRPC-Web answer 200 with a status of their own. */
  readonly httpStatus: number;
  /** The gateway's own, or one that was made writable. */
  readonly error: ConnectError;
  /** The RPC that was requested, if known. */
  readonly procedure?: string | undefined;
  readonly fields?: HeaderFields;
  /** The format of the messages, for a stream of the Connect protocol. */
  readonly connectStream?: RpcFormat | undefined;
}

/**
 * Answers with a refusal in the form of the caller's protocol.
 *
 * @throws whatever keeps the error from being written, for example details that do not serialize; then nothing was sent
 */
export function writeRefusal(exchange: Exchange, refusal: Refusal, writeErrorRecord: ErrorRecordWriter): void {
  const { protocol, httpStatus, error, fields = [], procedure } = refusal;
  const wrongMethod = httpStatus === 405;
  // Clients of Connect and gRPC take JSON at an RPC's path for an error of their protocol, or ignore it. So by default
  // the status alone says that this was not a call; only a custom error record is sent. None of them posts a form or no
  // content type, though: that is a person with `curl -d` or `curl -X POST`, who is told what is wrong.
  const noCall = procedure !== undefined && (wrongMethod || httpStatus === 415);
  const { contentType } = exchange.common;
  const isPerson = exchange.httpMethod === "POST" && (contentType === null || curlHint(contentType) !== "");
  if (noCall && !isPerson && writeErrorRecord.isDefault) return exchange.answer(httpStatus, fields, noBytes);
  if (refusal.connectStream !== undefined) return refuseConnectStream(exchange, refusal.connectStream, error);
  if (protocol === "connect") return refuseConnect(exchange, httpStatus, error, fields);
  // A wrong method is an error of HTTP, also for gRPC, whose answers have no 405.
  if (protocol === "grpc" && !wrongMethod) return refuseGrpc(exchange, error);
  if (protocol === "grpc-web" && !wrongMethod) return refuseGrpcWeb(exchange, error);
  // A wrong method matches no RPC, even where there is one at the path.
  const record = writeErrorRecord(error, { httpStatus, procedure: wrongMethod ? undefined : procedure });
  exchange.answer(record.httpStatus, restErrorHeader(error, record.contentType, fields), record.body);
}
