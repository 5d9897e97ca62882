import { Code, ConnectError } from "@connectrpc/connect";
import type { RestBinding, RestRouter } from "../rest/index.ts";
import type { Protocol } from "./admit.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import { type HeaderFields, readField } from "./header-fields.ts";
import type { Procedure } from "./procedure.ts";
import { callerProtocol, type RpcContentType, readRpcContentType } from "./rpc-content-type.ts";

/** What a request asks for, by its method, path and header alone. */
export type Match =
  | { readonly kind: "rpc"; readonly procedure: Procedure; readonly type: RpcContentType }
  | {
      readonly kind: "connect-get";
      readonly procedure: Procedure;
      readonly format: RpcContentType["format"];
      readonly query: URLSearchParams;
    }
  | {
      readonly kind: "rest";
      readonly procedure: Procedure;
      readonly binding: RestBinding;
      readonly captures: readonly string[];
      readonly query: string;
    }
  | { readonly kind: "endpoint"; readonly endpoint: Endpoint }
  | Refused;

/** A request that there is no RPC for, and the answer to it once it is admitted. */
export interface Refused {
  readonly kind: "refused";
  /** Whose form the answer takes. */
  readonly protocol: Protocol;
  readonly httpStatus: number;
  readonly error: ConnectError;
  /** The RPC whose path it was, if only the method or the content type was wrong. */
  readonly procedure: Procedure | undefined;
  /** Nothing is known of the path at all: a `fallback` may take the request. */
  readonly unknown: boolean;
  readonly fields: HeaderFields;
}

/** Everything that can be asked for, looked up by path. */
export interface MatchTable {
  readonly procedures: ReadonlyMap<string, Procedure>;
  /** By their full path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly rest: RestRouter;
  readonly prefix: string;
}

/** Finds what a request asks for. Pure: looks at nothing but method, target and header. */
export function matchRequest(table: MatchTable, exchange: Exchange): Match {
  const { target } = exchange;
  const questionMark = target.indexOf("?");
  const fullPath = questionMark < 0 ? target : target.slice(0, questionMark);
  const endpoint = table.endpoints.get(fullPath);
  if (endpoint !== undefined) return matchEndpoint(endpoint, exchange);
  if (!fullPath.startsWith(table.prefix)) return notFound(exchange);
  const path = table.prefix === "" ? fullPath : fullPath.slice(table.prefix.length);
  const query = questionMark < 0 ? "" : target.slice(questionMark + 1);
  const procedure = table.procedures.get(path);
  if (procedure !== undefined) return matchRpc(procedure, exchange, query);
  return matchRest(table, exchange, path, query);
}

function matchEndpoint(endpoint: Endpoint, exchange: Exchange): Match {
  const { httpMethod } = exchange;
  if (httpMethod === "GET" || httpMethod === "HEAD") return { kind: "endpoint", endpoint };
  return methodNotAllowed(exchange, undefined, "GET, HEAD");
}

function matchRest(table: MatchTable, exchange: Exchange, path: string, query: string): Match {
  const found = table.rest.match(exchange.httpMethod, path);
  switch (found.kind) {
    case "binding": {
      const { binding, captures } = found;
      const bound = table.procedures.get(binding.procedure);
      if (bound?.unary === undefined) return notFound(exchange);
      return { kind: "rest", procedure: bound, binding, captures, query };
    }
    case "method-not-allowed":
      return methodNotAllowed(exchange, undefined, found.allow);
    case "not-found":
      return notFound(exchange);
    case "malformed":
      return refused(exchange, 400, new ConnectError(found.message, Code.InvalidArgument));
  }
}

function matchRpc(procedure: Procedure, exchange: Exchange, query: string): Match {
  const { allowedMethods } = procedure.handler;
  if (!allowedMethods.includes(exchange.httpMethod)) {
    return methodNotAllowed(exchange, procedure, allowedMethods.toSorted().join(", "));
  }
  if (exchange.httpMethod === "GET" && procedure.unary !== undefined) {
    const parameters = new URLSearchParams(query);
    const encoding = parameters.get("encoding");
    if (encoding !== "proto" && encoding !== "json") return unsupportedMediaType(exchange, procedure);
    const format = encoding === "proto" ? "binary" : "json";
    return { kind: "connect-get", procedure, format, query: parameters };
  }
  const type = readRpcContentType(readField(exchange.fields, "content-type") ?? "");
  if (type === undefined || !speaks(procedure, type)) return unsupportedMediaType(exchange, procedure);
  return { kind: "rpc", procedure, type };
}

function speaks(procedure: Procedure, { protocol, stream }: RpcContentType): boolean {
  if (protocol === "connect" && stream !== (procedure.unary === undefined)) return false;
  return procedure.handler.protocolNames.includes(protocol);
}

function notFound(exchange: Exchange): Refused {
  const protocol = protocolOf(exchange);
  // gRPC and Connect know an RPC that is not there as unimplemented.
  const code = protocol === "rest" ? Code.NotFound : Code.Unimplemented;
  return { ...refused(exchange, 404, new ConnectError("there is nothing at this path", code)), unknown: true };
}

function methodNotAllowed(exchange: Exchange, procedure: Procedure | undefined, allow: string): Refused {
  const error = new ConnectError(`${exchange.httpMethod} is not allowed here`, Code.Unimplemented);
  // RFC 9110 §15.5.6: a 405 must carry Allow.
  return { ...refused(exchange, 405, error), procedure, fields: ["allow", allow] };
}

function unsupportedMediaType(exchange: Exchange, procedure: Procedure): Refused {
  const sent = readField(exchange.fields, "content-type");
  const message = sent === null ? "the content type is missing" : "the content type is not supported";
  return { ...refused(exchange, 415, new ConnectError(message, Code.InvalidArgument)), procedure };
}

function refused(exchange: Exchange, httpStatus: number, error: ConnectError): Refused {
  const protocol = protocolOf(exchange);
  return { kind: "refused", protocol, httpStatus, error, procedure: undefined, unknown: false, fields: [] };
}

function protocolOf(exchange: Exchange): Protocol {
  const contentType = readField(exchange.fields, "content-type") ?? "";
  return callerProtocol(contentType, readField(exchange.fields, "connect-protocol-version") !== null);
}
