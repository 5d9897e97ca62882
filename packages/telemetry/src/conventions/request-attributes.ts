import { Code, type ConnectError } from "@connectrpc/connect";
import type { AnsweredRequest } from "@plantstore/gateway/internal/serve";
import type { Attributes } from "./instruments.ts";

/** A system of the semantic conventions for RPC. */
interface RpcSystem {
  readonly name: string;
  /** Returns the status of a call as the system spells it; `undefined` if it has no word for it. */
  statusOf(code: Code | undefined): string | undefined;
}

const grpc: RpcSystem = { name: "grpc", statusOf: grpcStatusOf };
const connectRpc: RpcSystem = { name: "connectrpc", statusOf: connectStatusOf };

/** The RPC system of each protocol; `undefined` for one that is recorded as HTTP. */
const rpcSystems: Readonly<Record<AnsweredRequest["protocol"], RpcSystem | undefined>> = {
  connect: connectRpc,
  grpc,
  "grpc-web": grpc,
  rest: undefined,
};

const systemNames = [...new Set(Object.values(rpcSystems).map((system) => system?.name))];

/** Returns whether the requests of a protocol are recorded as RPCs, by {@link rpcAttributes}, and not as HTTP. */
export function isRpcProtocol(protocol: AnsweredRequest["protocol"]): boolean {
  return rpcSystems[protocol] !== undefined;
}

/**
 * Returns the attributes of a call by the semantic conventions for RPC. All of them have few values: the methods are
 * those that are served, and any other is `_OTHER`.
 */
export function rpcAttributes({ procedure, protocol, error }: AnsweredRequest): Attributes {
  const system = rpcSystems[protocol];
  const status = system?.statusOf(error?.code);
  return {
    ...(system !== undefined && { "rpc.system.name": system.name }),
    "rpc.method": procedure?.slice(1) ?? "_OTHER",
    ...(status !== undefined && { "rpc.response.status_code": status }),
    ...(isServerError(error) && { "error.type": status ?? "_OTHER" }),
  };
}

/**
 * Returns the attributes of an HTTP request by the semantic conventions; the route is its template, never its path.
 *
 * Where an RPC failed, its code decides whether the server is to blame, because a service may answer each error with
 * the same status. A client that goes away is not an error here either: such a request has no status.
 */
export function httpAttributes(answer: AnsweredRequest): Attributes {
  const { httpMethod, httpRoute, httpStatus, httpVersion, scheme } = answer;
  const code = blamedCode(answer);
  return {
    "http.request.method": knownMethods.includes(httpMethod) ? httpMethod : "_OTHER",
    "url.scheme": scheme,
    ...(httpVersion !== undefined && { "network.protocol.version": httpVersion === "2.0" ? "2" : httpVersion }),
    ...(httpRoute !== undefined && { "http.route": httpRoute }),
    ...(httpStatus !== 0 && { "http.response.status_code": httpStatus }),
    ...(httpStatus >= 500 && !isUnknownMethod(answer) && { "error.type": String(httpStatus) }),
    ...(code !== undefined && { "error.type": snakeCase(code) }),
  };
}

/** Returns whether the client has sent a method that nothing here has: the 501 for that is no fault of the server. */
function isUnknownMethod({ httpStatus, httpRoute }: AnsweredRequest): boolean {
  return httpStatus === 501 && httpRoute === undefined;
}

/** Returns a number that two calls of a method share exactly when their {@link rpcAttributes} are the same. */
export function rpcSeriesKey({ protocol, error }: AnsweredRequest): number {
  return (error?.code ?? 0) * systemNames.length + systemNames.indexOf(rpcSystems[protocol]?.name);
}

/** Returns a number that two requests of a route share exactly when their {@link httpAttributes} are the same. */
export function httpSeriesKey(answer: AnsweredRequest): number {
  const { httpMethod, httpStatus, httpVersion, scheme } = answer;
  // -1 for any other.
  const method = knownMethods.indexOf(httpMethod);
  const version = httpVersions.indexOf(httpVersion);
  // No test can tell: other factors make other numbers, which are shared in the same way.
  const outcome = (blamedCode(answer) ?? 0) * 1_000 + httpStatus;
  const methods = knownMethods.length + 1;
  return ((outcome * methods + method) * httpVersions.length + version) * 2 + (scheme === "https" ? 1 : 0);
}

/**
 * Returns the code of a failed RPC for which the server is to blame. To HTTP, a path or method that nothing serves is a
 * mistake of the client, while gRPC and the conventions for RPC blame the server for it.
 */
function blamedCode({ error, procedure }: AnsweredRequest): Code | undefined {
  if (!isServerError(error)) return undefined;
  return error.code === Code.Unimplemented && procedure === undefined ? undefined : error.code;
}

const httpVersions: readonly AnsweredRequest["httpVersion"][] = ["2.0", "1.1", "1.0", undefined];

// RFC 9110 §9 and RFC 5789. Clients may invent others, each of which would be a series of its own.
const knownMethods = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/** Returns whether the conventions for RPC blame the server; other errors are answers to what the client asked. */
function isServerError(error: AnsweredRequest["error"]): error is ConnectError {
  return error !== undefined && serverErrors.has(error.code);
}

const serverErrors: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

/** Returns a code as gRPC spells it, such as `NOT_FOUND`; `OK` without an error. */
function grpcStatusOf(code: Code | undefined): string {
  // The one code that gRPC and Connect spell differently.
  if (code === Code.Canceled) return "CANCELLED";
  return code === undefined ? "OK" : snakeCase(code).toUpperCase();
}

/** Returns a code as Connect spells it, such as `not_found`; Connect has no word for success. */
function connectStatusOf(code: Code | undefined): string | undefined {
  return code === undefined ? undefined : snakeCase(code);
}

function snakeCase(code: Code): string {
  return (Code[code] ?? "Unknown").replaceAll(/(?<=[a-z])[A-Z]/g, (capital) => `_${capital}`).toLowerCase();
}
