import { ConnectError } from "@connectrpc/connect";
import type { ErrorWriter } from "./error-writer.ts";
import type { Protocol } from "./admit.ts";
import { refuseConnectStream } from "./connect-stream.ts";
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
  /** Present for a stream of the Connect protocol, with its codec. */
  readonly connectStream?: "binary" | "json" | undefined;
}

/**
 * Answers with a refusal in the form that the caller's protocol has for it; never throws. What cannot be written,
 * such as an error whose details do not serialize, ends the exchange and not the process.
 */
export function refuse(exchange: Exchange, refusal: Refusal, writeErrorRecord: ErrorWriter): void {
  try {
    writeRefusal(exchange, refusal, writeErrorRecord);
  } catch (error) {
    exchange.reset();
    // Nobody else can tell of it: the client learns nothing, and whoever is told of answers has the refusal alone.
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}

function writeRefusal(exchange: Exchange, refusal: Refusal, writeErrorRecord: ErrorWriter): void {
  const { protocol, httpStatus, fields, procedure } = refusal;
  const error = wellFormed(refusal.error);
  const wrongMethod = httpStatus === 405;
  // Connect's and gRPC's clients take any JSON at an RPC's path for an error of their own, or do not read it:
  // the library says by the status alone that this was no call. Who writes a record of their own wants it here too.
  const noCall = procedure !== undefined && (wrongMethod || httpStatus === 415);
  if (noCall && writeErrorRecord.isDefault) {
    return exchange.answer(httpStatus, [...fields, ...metadataFields(error)], new Uint8Array(0));
  }
  const contentType = readField(exchange.fields, "content-type") ?? "";
  if (refusal.connectStream !== undefined) return refuseConnectStream(exchange, refusal.connectStream, error);
  if (protocol === "connect") return refuseConnect(exchange, httpStatus, error, fields);
  // The method is HTTP's to judge, also for gRPC: its answers have no 405.
  if (protocol === "grpc" && !wrongMethod) return refuseGrpc(exchange, grpcContentType(contentType), error);
  if (protocol === "grpc-web" && !wrongMethod) return refuseGrpcWeb(exchange, grpcContentType(contentType), error);
  // With the wrong method no RPC was matched, although one is known.
  const record = writeErrorRecord(error, { httpStatus, procedure: wrongMethod ? undefined : procedure });
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
  const [, base = "application/grpc", format = ""] =
    /^(application\/grpc(?:-web(?:-text)?)?)(\+(?:proto|json)$)?/.exec(type) ?? [];
  return base + format;
}
