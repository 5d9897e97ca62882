import { Code, ConnectError } from "@connectrpc/connect";
import type { RestBinding, RestRouter, TextIndex } from "../rest/index.ts";
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
  /** By their path, without the prefix. */
  readonly procedures: TextIndex<Procedure>;
  /** By their full path. */
  readonly endpoints: TextIndex<Endpoint>;
  readonly rest: RestRouter;
  readonly prefix: string;
}

/** All that is looked at. */
export type RequestHead = Pick<Exchange, "httpMethod" | "target" | "fields">;

/** Finds what a request asks for. Pure: looks at nothing but method, target and header. */
export function matchRequest(table: MatchTable, head: RequestHead): Match {
  const { target } = head;
  const questionMark = target.indexOf("?");
  const fullPath = questionMark < 0 ? target : target.slice(0, questionMark);
  const endpoint = table.endpoints.get(fullPath);
  if (endpoint !== undefined) return matchEndpoint(endpoint, head);
  if (!fullPath.startsWith(table.prefix)) return notFound(head);
  const path = table.prefix === "" ? fullPath : fullPath.slice(table.prefix.length);
  const query = questionMark < 0 ? "" : target.slice(questionMark + 1);
  const procedure = table.procedures.get(path);
  if (procedure !== undefined) return matchRpc(procedure, head, query);
  return matchRest(table, head, path, query);
}

function matchEndpoint(endpoint: Endpoint, head: RequestHead): Match {
  const { httpMethod } = head;
  if (httpMethod === "GET" || httpMethod === "HEAD") return { kind: "endpoint", endpoint };
  return methodNotAllowed(head, undefined, "GET, HEAD");
}

function matchRest(table: MatchTable, head: RequestHead, path: string, query: string): Match {
  const found = table.rest.match(head.httpMethod, path);
  switch (found.kind) {
    case "binding": {
      const { binding, captures } = found;
      const bound = table.procedures.get(binding.procedure);
      if (bound?.unary === undefined) return notFound(head);
      return { kind: "rest", procedure: bound, binding, captures, query };
    }
    case "method-not-allowed":
      return methodNotAllowed(head, undefined, found.allow);
    case "not-found":
      return notFound(head);
    case "malformed":
      return { ...refused(head, 400, new ConnectError(found.message, Code.InvalidArgument)), unknown: true };
  }
}

function matchRpc(procedure: Procedure, head: RequestHead, query: string): Match {
  const { allowedMethods } = procedure.handler;
  if (!allowedMethods.includes(head.httpMethod)) {
    return methodNotAllowed(head, procedure, allowedMethods.toSorted().join(", "));
  }
  if (head.httpMethod === "GET" && procedure.unary !== undefined) {
    const parameters = new URLSearchParams(query);
    const encoding = parameters.get("encoding");
    if (encoding !== "proto" && encoding !== "json") return unsupportedMediaType(head, procedure);
    const format = encoding === "proto" ? "binary" : "json";
    return { kind: "connect-get", procedure, format, query: parameters };
  }
  const type = readRpcContentType(readField(head.fields, "content-type") ?? "");
  if (type === undefined || !speaks(procedure, type)) return unsupportedMediaType(head, procedure);
  return { kind: "rpc", procedure, type };
}

function speaks(procedure: Procedure, { protocol, stream }: RpcContentType): boolean {
  if (protocol === "connect" && stream !== (procedure.unary === undefined)) return false;
  return procedure.handler.protocolNames.includes(protocol);
}

function notFound(head: RequestHead): Refused {
  const protocol = protocolOf(head);
  // gRPC and Connect know an RPC that is not there as unimplemented.
  const code = protocol === "rest" ? Code.NotFound : Code.Unimplemented;
  return { ...refused(head, 404, new ConnectError("there is nothing at this path", code)), unknown: true };
}

function methodNotAllowed(head: RequestHead, procedure: Procedure | undefined, allow: string): Refused {
  const error = new ConnectError(`${head.httpMethod} is not allowed here`, Code.Unimplemented);
  // RFC 9110 §15.5.6: a 405 must carry Allow.
  return { ...refused(head, 405, error), procedure, fields: ["allow", allow] };
}

function unsupportedMediaType(head: RequestHead, procedure: Procedure): Refused {
  const sent = readField(head.fields, "content-type");
  const message = sent === null ? "the content type is missing" : "the content type is not supported";
  return { ...refused(head, 415, new ConnectError(message, Code.InvalidArgument)), procedure };
}

function refused(head: RequestHead, httpStatus: number, error: ConnectError): Refused {
  const protocol = protocolOf(head);
  return { kind: "refused", protocol, httpStatus, error, procedure: undefined, unknown: false, fields: [] };
}

function protocolOf(head: RequestHead): Protocol {
  const contentType = readField(head.fields, "content-type") ?? "";
  return callerProtocol(contentType, readField(head.fields, "connect-protocol-version") !== null);
}
