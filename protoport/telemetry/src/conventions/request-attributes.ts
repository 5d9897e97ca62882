import { Code, type ConnectError } from "@connectrpc/connect";
import type { CompletedRequest } from "@protoport/gateway";
import type { Attributes } from "./instruments.ts";

/** An RPC system in the semantic conventions (`rpc.system.name`). */
interface RpcSystem {
  readonly name: string;
  /** Returns a call status as the RPC system spells it, or `undefined` if the system has no name for it. */
  statusOf(code: Code | undefined): string | undefined;
}

const grpcSystem: RpcSystem = { name: "grpc", statusOf: grpcStatusOf };
/** MCP sends an RPC's failure as a result without a JSON-RPC error code, so the gRPC status is recorded. */
const jsonRpc: RpcSystem = { name: "jsonrpc", statusOf: grpcStatusOf };
const connectRpc: RpcSystem = { name: "connectrpc", statusOf: connectStatusOf };

/** Each protocol's RPC system, or `undefined` for protocols that are recorded as HTTP. */
const rpcSystems: Readonly<Record<CompletedRequest["protocol"], RpcSystem | undefined>> = {
  connect: connectRpc,
  grpc: grpcSystem,
  "grpc-web": grpcSystem,
  mcp: jsonRpc,
  rest: undefined,
};

const systemNames = [...new Set(Object.values(rpcSystems).map((system) => system?.name))];

/** Returns whether a protocol's requests are recorded as RPCs with {@link rpcAttributes}, not as HTTP requests. */
export function isRpcProtocol(protocol: CompletedRequest["protocol"]): boolean {
  return rpcSystems[protocol] !== undefined;
}

/** Returns a call's attributes by the semantic conventions for RPC. An unknown method is recorded as `_OTHER`. */
export function rpcAttributes({ procedure, protocol, error }: CompletedRequest): Attributes {
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
 * Returns an HTTP request's attributes by the semantic conventions. The route is a template, never a path.
 *
 * If an RPC failed, its code determines whether the failure is a server error, because a service may respond to all
 * errors with the same status. A request that the client cancelled has no status and is not an error.
 */
export function httpAttributes(request: CompletedRequest): Attributes {
  const { httpMethod, httpRoute, httpStatus, httpVersion, scheme } = request;
  const code = serverErrorCode(request);
  return {
    "http.request.method": knownMethods.includes(httpMethod) ? httpMethod : "_OTHER",
    "url.scheme": scheme,
    ...(httpVersion !== undefined && { "network.protocol.version": httpVersion === "2.0" ? "2" : httpVersion }),
    ...(httpRoute !== undefined && { "http.route": httpRoute }),
    ...(httpStatus !== 0 && { "http.response.status_code": httpStatus }),
    ...(httpStatus >= 500 && !isUnknownMethod(request) && { "error.type": String(httpStatus) }),
    ...(code !== undefined && { "error.type": snakeCase(code) }),
  };
}

/** Returns whether the response is 501 for an HTTP method that is not implemented, which is not a server error. */
function isUnknownMethod({ httpStatus, httpRoute }: CompletedRequest): boolean {
  return httpStatus === 501 && httpRoute === undefined;
}

/** Returns a number that is equal for two calls to a method if and only if their {@link rpcAttributes} are equal. */
export function rpcSeriesKey({ protocol, error }: CompletedRequest): number {
  return (error?.code ?? 0) * systemNames.length + systemNames.indexOf(rpcSystems[protocol]?.name);
}

/** Returns a number that is equal for two requests to a route if and only if their {@link httpAttributes} are equal. */
export function httpSeriesKey(request: CompletedRequest): number {
  const { httpMethod, httpStatus, httpVersion, scheme } = request;
  // The index is -1 for an unknown method.
  const method = knownMethods.indexOf(httpMethod);
  const version = httpVersions.indexOf(httpVersion);
  // Equivalent mutant: other factors change the keys, but not which keys are equal.
  const outcome = (serverErrorCode(request) ?? 0) * 1_000 + httpStatus;
  const methods = knownMethods.length + 1;
  return ((outcome * methods + method) * httpVersions.length + version) * 2 + (scheme === "https" ? 1 : 0);
}

/**
 * Returns the code for an RPC that failed with a server error. An unknown path or method is a client error in HTTP,
 * although gRPC and the conventions for RPC count it as a server error.
 */
function serverErrorCode({ error, procedure }: CompletedRequest): Code | undefined {
  if (!isServerError(error)) return undefined;
  return error.code === Code.Unimplemented && procedure === undefined ? undefined : error.code;
}

const httpVersions: readonly CompletedRequest["httpVersion"][] = ["2.0", "1.1", "1.0", undefined];

// The methods in RFC 9110 §9 and RFC 5789. Other methods are not recorded, so that clients cannot create series.
const knownMethods = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/** Returns whether the conventions for RPC count an error as a server error. */
function isServerError(error: CompletedRequest["error"]): error is ConnectError {
  return error !== undefined && serverErrorCodes.has(error.code);
}

const serverErrorCodes: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

/** Returns a code in gRPC's spelling, such as `NOT_FOUND`. Returns `OK` if there is no error. */
export function grpcStatusOf(code: Code | undefined): string {
  // `Canceled` is the only code that gRPC and Connect spell differently.
  if (code === Code.Canceled) return "CANCELLED";
  return code === undefined ? "OK" : snakeCase(code).toUpperCase();
}

/** Returns a code in Connect's spelling, such as `not_found`. Connect has no code for success. */
function connectStatusOf(code: Code | undefined): string | undefined {
  return code === undefined ? undefined : snakeCase(code);
}

function snakeCase(code: Code): string {
  return (Code[code] ?? "Unknown").replaceAll(/(?<=[a-z])[A-Z]/g, (capital) => `_${capital}`).toLowerCase();
}
