import type { ConnectError } from "@connectrpc/connect";
import {
  type Protocol,
  refuseConnectStream,
  refuseConnect,
  refuseGrpc,
  refuseGrpcWeb,
  refuseRest,
} from "../protocols/index.ts";
import type { Exchange, HeaderFields } from "../carriers/index.ts";
import type { ErrorRecordWriter } from "../rest/index.ts";
import type { OnFault } from "./faults.ts";

/** An answer to a request that never became a call. */
export interface Refusal {
  readonly protocol: Protocol;
  /** Its HTTP status; gRPC and gRPC-Web answer 200 with a status of their own. */
  readonly httpStatus: number;
  /** The gateway's own, or made by `toConnectError`, so that every protocol can write it. */
  readonly error: ConnectError;
  /** The RPC that was requested, if known. */
  readonly procedure: string | undefined;
  readonly fields: HeaderFields;
  /** The format of the messages, for a stream of the Connect protocol. */
  readonly connectStream?: "binary" | "json" | undefined;
}

/**
 * Answers with a refusal in the form of the caller's protocol. Never throws: a refusal that cannot be written, for
 * example because the error's details do not serialize, resets the exchange and is reported.
 */
export function refuse(
  exchange: Exchange,
  refusal: Refusal,
  writeErrorRecord: ErrorRecordWriter,
  report: OnFault,
): void {
  try {
    writeRefusal(exchange, refusal, writeErrorRecord);
  } catch (error) {
    exchange.reset();
    report(error, "a refusal could not be written");
  }
}

function writeRefusal(exchange: Exchange, refusal: Refusal, writeErrorRecord: ErrorRecordWriter): void {
  const { protocol, httpStatus, error, fields, procedure } = refusal;
  const wrongMethod = httpStatus === 405;
  // Clients of Connect and gRPC take JSON at an RPC's path for an error of their protocol, or ignore it. So by default
  // the status alone says that this was not a call; only a custom error record is sent.
  const noCall = procedure !== undefined && (wrongMethod || httpStatus === 415);
  if (noCall && writeErrorRecord.isDefault) return exchange.answer(httpStatus, fields, new Uint8Array(0));
  if (refusal.connectStream !== undefined) return refuseConnectStream(exchange, refusal.connectStream, error);
  if (protocol === "connect") return refuseConnect(exchange, httpStatus, error, fields);
  // A wrong method is an error of HTTP, also for gRPC, whose answers have no 405.
  if (protocol === "grpc" && !wrongMethod) return refuseGrpc(exchange, error);
  if (protocol === "grpc-web" && !wrongMethod) return refuseGrpcWeb(exchange, error);
  // A wrong method matches no RPC, even where there is one at the path.
  const record = writeErrorRecord(error, { httpStatus, procedure: wrongMethod ? undefined : procedure });
  refuseRest(exchange, record, error, fields);
}
