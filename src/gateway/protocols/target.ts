import type { Exchange } from "../carriers/index.ts";
import { ConnectStream } from "./connect/connect-stream.ts";
import { ConnectUnary } from "./connect/connect-unary.ts";
import type { RpcContentType } from "./content-type.ts";
import { GrpcStream } from "./grpc/grpc-stream.ts";
import { GrpcUnary } from "./grpc/grpc-unary.ts";
import { GrpcWebStream } from "./grpc-web/grpc-web-stream.ts";
import { GrpcWebUnary } from "./grpc-web/grpc-web-unary.ts";
import type { StreamProcedure, UnaryProcedure } from "./procedure.ts";
import type { ErrorRecordWriter } from "../rest/index.ts";
import { RestByteStream } from "./rest/rest-byte-stream.ts";
import { RestClientStream } from "./rest/rest-client-stream.ts";
import { RestMessageStream } from "./rest/rest-message-stream.ts";
import type { RestStreamTarget } from "./rest/rest-stream.ts";
import { type RestTarget, RestUnary } from "./rest/rest-unary.ts";
import type { Protocol, StreamProtocol, UnaryProtocol } from "./call-protocol.ts";

/** A unary RPC as a request asks for it, with what its URL and content type say about the call. */
export type UnaryTarget = RpcTarget | ConnectGetTarget | RestTarget;

/** A unary RPC named by the path `/package.Service/Method` of a POST. */
export interface RpcTarget {
  readonly kind: "rpc";
  readonly protocol: Protocol;
  readonly procedure: UnaryProcedure;
  readonly type: RpcContentType;
}

/** A unary RPC named by the path of a GET, with the message in the query (Connect protocol, "Unary-Get-Request"). */
export interface ConnectGetTarget {
  readonly kind: "connect-get";
  readonly protocol: "connect";
  readonly procedure: UnaryProcedure;
  readonly format: RpcContentType["format"];
  readonly query: URLSearchParams;
}

/** Opens the protocol of a unary call on its exchange. */
export function openUnaryProtocol(
  exchange: Exchange,
  target: UnaryTarget,
  writeErrorRecord: ErrorRecordWriter,
): UnaryProtocol {
  if (target.kind === "rest") return new RestUnary(exchange, target, writeErrorRecord);
  const { procedure } = target;
  if (target.kind === "connect-get") return new ConnectUnary(exchange, procedure, target.format, target.query);
  const { protocol, format, text } = target.type;
  if (protocol === "grpc") return new GrpcUnary(exchange, procedure, format);
  if (protocol === "grpc-web") return new GrpcWebUnary(exchange, procedure, format, text);
  return new ConnectUnary(exchange, procedure, format, undefined);
}

/** A streaming RPC, and how its messages are written. */
export interface StreamTarget {
  readonly kind: "stream";
  readonly protocol: Protocol;
  readonly procedure: StreamProcedure;
  readonly type: RpcContentType;
}

/** Opens the protocol of a streaming call on its exchange. */
export function openStreamProtocol(
  exchange: Exchange,
  target: StreamTarget | RestStreamTarget,
  writeErrorRecord: ErrorRecordWriter,
): StreamProtocol {
  if (target.kind === "rest-stream") {
    const isAnsweredOnce = target.procedure.method.methodKind === "client_streaming";
    if (isAnsweredOnce) return new RestClientStream(exchange, target, writeErrorRecord);
    const RestAnswers = target.binding.toRaw === undefined ? RestMessageStream : RestByteStream;
    return new RestAnswers(exchange, target, writeErrorRecord);
  }
  const { procedure, type } = target;
  const { protocol, format, text } = type;
  if (protocol === "grpc") return new GrpcStream(exchange, procedure, format);
  if (protocol === "grpc-web") return new GrpcWebStream(exchange, procedure, format, text);
  return new ConnectStream(exchange, procedure, format);
}
