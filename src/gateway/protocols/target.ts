import type { Exchange } from "../carriers/index.ts";
import type { ErrorRecordWriter } from "../rest/index.ts";
import type { StreamProtocol, UnaryProtocol } from "./call-protocol.ts";
import { ConnectStream, ConnectUnary } from "./connect.ts";
import { readRpcContentType, type RpcContentType, rpcContentTypes, type RpcFormat } from "./content-type.ts";
import { GrpcCall } from "./grpc.ts";
import { GrpcWebCall } from "./grpc-web.ts";
import type { Procedure, StreamProcedure, UnaryProcedure } from "./procedure.ts";
import { RestByteStream } from "./rest/rest-byte-stream.ts";
import { RestClientStream } from "./rest/rest-client-stream.ts";
import { RestMessageStream } from "./rest/rest-message-stream.ts";
import type { RestStreamTarget, RestTarget } from "./rest/rest-target.ts";
import { RestUnary } from "./rest/rest-unary.ts";

/** A unary RPC as a request asks for it, with what its URL and content type say about the call. */
export type UnaryTarget = RpcTarget | ConnectGetTarget | RestTarget;

/** A unary RPC named by the path `/package.Service/Method` of a POST. */
interface RpcTarget {
  readonly kind: "rpc";
  readonly protocol: RpcContentType["protocol"];
  readonly procedure: UnaryProcedure;
  readonly type: RpcContentType;
}

/** A unary RPC named by the path of a GET, with the message in the query (Connect protocol, "Unary-Get-Request"). */
interface ConnectGetTarget {
  readonly kind: "connect-get";
  readonly protocol: "connect";
  readonly procedure: UnaryProcedure;
  readonly format: RpcFormat;
  readonly query: URLSearchParams;
}

/** A streaming RPC as a request asks for it. */
export type StreamTarget = RpcStreamTarget | RestStreamTarget;

/** A streaming RPC named by the path of a POST, and how its messages are written. */
interface RpcStreamTarget {
  readonly kind: "stream";
  readonly protocol: RpcContentType["protocol"];
  readonly procedure: StreamProcedure;
  readonly type: RpcContentType;
}

/**
 * What requests ask for at the path of an RPC, by the content types as the protocols spell them. Prepared, so that calls
 * share them.
 */
export type RpcTargets = ReadonlyMap<string, RpcTarget | RpcStreamTarget>;

/** Prepares the targets of an RPC in the protocols that its options allow. */
export function createRpcTargets(procedure: Procedure): RpcTargets {
  const targets = new Map<string, RpcTarget | RpcStreamTarget>();
  for (const [contentType, type] of rpcContentTypes) {
    const { protocol, stream } = type;
    if (protocol === "connect" && stream !== (procedure.kind === "stream")) continue;
    if (!procedure.speaks[protocol]) continue;
    if (procedure.kind === "unary") targets.set(contentType, { kind: "rpc", protocol, procedure, type });
    else targets.set(contentType, { kind: "stream", protocol, procedure, type });
  }
  return targets;
}

/** Finds the target of a POST whose content type is spelled in another way; `undefined` if it is not supported. */
export function findRpcTarget(targets: RpcTargets, contentType: string): RpcTarget | RpcStreamTarget | undefined {
  const type = readRpcContentType(contentType);
  return [...targets.values()].find((target) => target.type === type);
}

/** Returns the target of a GET by its query; `undefined` if that names no encoding, or another than our two. */
export function findGetTarget(procedure: UnaryProcedure, query: URLSearchParams): ConnectGetTarget | undefined {
  const encoding = query.get("encoding");
  if (encoding !== "proto" && encoding !== "json") return undefined;
  return {
    kind: "connect-get",
    protocol: "connect",
    procedure,
    format: encoding === "proto" ? "binary" : "json",
    query,
  };
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
  if (protocol === "grpc") return new GrpcCall(exchange, procedure, format);
  if (protocol === "grpc-web") return new GrpcWebCall(exchange, procedure, format, text);
  return new ConnectUnary(exchange, procedure, format, undefined);
}

/** Opens the protocol of a streaming call on its exchange. */
export function openStreamProtocol(
  exchange: Exchange,
  target: StreamTarget,
  writeErrorRecord: ErrorRecordWriter,
): StreamProtocol {
  if (target.kind === "rest-stream") {
    const isAnsweredOnce = target.procedure.method.methodKind === "client_streaming";
    if (isAnsweredOnce) return new RestClientStream(exchange, target, writeErrorRecord);
    const RestAnswers = target.binding.toRaw === undefined ? RestMessageStream : RestByteStream;
    return new RestAnswers(exchange, target, writeErrorRecord);
  }
  const { protocol, format, text } = target.type;
  if (protocol === "grpc") return new GrpcCall(exchange, target.procedure, format);
  if (protocol === "grpc-web") return new GrpcWebCall(exchange, target.procedure, format, text);
  return new ConnectStream(exchange, target.procedure, format);
}
