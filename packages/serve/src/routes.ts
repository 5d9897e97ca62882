import { Code, type ConnectError } from "@connectrpc/connect";
import { type HiddenParts, problem, quote } from "@plantstore/protobuf";
import { type HeaderFields, noBytes } from "@plantstore/http";
import {
  type BodyTarget,
  type CallTarget,
  claimedBy,
  type Mismatch,
  type Rpc,
  type Protocol,
  type Protocols,
  type Refusal,
  type RequestHead,
  normalizeContentType,
  curlHint,
  httpStatusOf,
  type RestRoutes,
} from "@plantstore/protocols";
import type { Cors } from "./cors.ts";
import { type Endpoint, methodsOf, serverEndpoint } from "./endpoint.ts";

/** A request's target, determined by its method, path and header. */
export type Target = CallTarget | BodyTarget | EndpointTarget | Unmatched;

/** A matched {@link Endpoint}. */
export interface EndpointTarget {
  readonly kind: "endpoint";
  readonly protocol: Protocol;
  readonly rpc: undefined;
  readonly endpoint: Endpoint;
  /** The methods that it accepts. */
  readonly httpMethods: readonly string[];
}

/** A request that does not become a call, and how to respond to it once it is admitted. */
export interface Unmatched {
  readonly kind: "unmatched";
  /** The request's protocol, in which an `admit` refusal is written. */
  readonly protocol: Protocol;
  /** Writes {@link refusal}. */
  readonly responder: Pick<Protocol, "refuse">;
  readonly refusal: Refusal;
  /** The RPC at this path, if only the method or the content type did not match. */
  readonly rpc: Rpc | undefined;
  /** Whether no route matches this path, so that a `fallback` may handle the request. */
  readonly unknown: boolean;
  readonly pathTemplate: undefined;
}

/** An RPC at its path. */
export class RpcPath {
  readonly kind = "rpc-path";
  readonly rpc: Rpc;
  readonly #protocols: readonly Protocol[];
  #targets: ReadonlyMap<string, CallTarget> | undefined;

  constructor(rpc: Rpc, protocols: readonly Protocol[]) {
    this.rpc = rpc;
    this.#protocols = protocols;
  }

  /** Returns a POST's target with this content type. */
  find(contentType: string): CallTarget | undefined {
    const targets = (this.#targets ??= this.#prepare());
    // Nearly all clients send the normalized form.
    return targets.get(contentType) ?? targets.get(normalizeContentType(contentType));
  }

  /** Prepares the targets with the first call, because many RPCs are never called. */
  #prepare(): ReadonlyMap<string, CallTarget> {
    return new Map(this.#protocols.flatMap((protocol) => [...protocol.targetsOf(this.rpc)]));
  }
}

/** All possible request targets, indexed by path. */
export interface Routes {
  /** RPCs and endpoints, by their exact path with the prefix. */
  readonly paths: PathIndex<RpcPath | EndpointTarget>;
  readonly protocols: Protocols;
  /** The methods that routes have, and the registered methods. */
  readonly httpMethods: ReadonlySet<string>;
  readonly prefix: string;
  /** Whether the application writes the errors of REST. */
  readonly hasErrorRecord: boolean;
  /** CORS, or `undefined` if it is off. */
  readonly cors: Cors | undefined;
  /** The REST routes, whose templates are below the prefix. */
  readonly rest: RestRoutes;
  /** Removes what callers must not see from error details. Returns `undefined` if nothing is hidden in messages. */
  readonly hidden?: HiddenParts | undefined;
  /** All labels of visibility rules in the handlers' services. */
  readonly visibilityLabels: ReadonlySet<string>;
  /**
   * Called with a path that no route matches or, on REST, that no route with the method matches. A proxy whose routes
   * are incomplete returns an error to send instead of 404 or 405, with the status 503 on REST.
   */
  readonly onUnknownPath?: (path: string) => ConnectError | undefined;
}

/** Returns RPCs and endpoints by their paths. */
export function indexPaths(
  rpcs: readonly Rpc[],
  endpoints: readonly Endpoint[],
  protocols: Protocols,
  prefix: string,
): Routes["paths"] {
  return new PathIndex<RpcPath | EndpointTarget>([
    ...rpcs.map((rpc) => [prefix + rpc.name, new RpcPath(rpc, protocols.all)] as const),
    ...[...endpoints, serverEndpoint].map(
      (endpoint) => [fullPathOf(endpoint, prefix), targetOf(endpoint, protocols.rest)] as const,
    ),
  ]);
}

/** Returns an endpoint's path, with the prefix unless it is at the root. */
export function fullPathOf({ atRoot, path }: Endpoint, prefix: string): string {
  return atRoot === true ? path : prefix + path;
}

function targetOf(endpoint: Endpoint, protocol: Protocol): EndpointTarget {
  return { kind: "endpoint", protocol, rpc: undefined, endpoint, httpMethods: methodsOf(endpoint) };
}

/** Returns a request target without its query. */
export function pathOf(target: string): string {
  const questionMark = target.indexOf("?");
  return questionMark < 0 ? target : target.slice(0, questionMark);
}

/** Finds a request's target. Depends only on method, target and header, and on `onUnknownPath`. */
export function findTarget(routes: Routes, head: RequestHead): Target {
  const { target } = head;
  const { protocols, prefix } = routes;
  const fullPath = pathOf(target);
  const query = target.slice(fullPath.length + 1);
  const known = routes.paths.get(fullPath);
  if (known?.kind === "endpoint") return findEndpoint(routes, known, head);
  if (known !== undefined) return findRpc(routes, known, head, query);
  if (!fullPath.startsWith(prefix)) return notFound(routes, head, fullPath);
  const path = prefix === "" ? fullPath : fullPath.slice(prefix.length);
  for (const protocol of protocols.withPaths) {
    const found = protocol.find(head, path, query);
    if (found === undefined) continue;
    return "open" in found ? found : mismatch(routes, head, found, fullPath);
  }
  return notFound(routes, head, fullPath);
}

function findEndpoint(routes: Routes, target: EndpointTarget, head: RequestHead): Target {
  const { httpMethods } = target;
  if (httpMethods.includes(head.httpMethod)) return target;
  return methodNotAllowed(routes, head, undefined, httpMethods.join(", "));
}

function mismatch(routes: Routes, head: RequestHead, found: Mismatch, path: string): Unmatched {
  const { protocols } = routes;
  switch (found.kind) {
    case "method-not-allowed":
      return refusalOfUnknownPath(routes, head, path) ?? methodNotAllowed(routes, head, undefined, found.allow);
    case "not-found":
      return notFound(routes, head, path);
    case "malformed":
      return {
        ...unmatchedTarget(claimedBy(protocols, head), problem("ERR_PATH_INVALID", found.message)),
        unknown: true,
      };
  }
}

function findRpc(routes: Routes, rpcPath: RpcPath, head: RequestHead, query: string): Target {
  const { rpc } = rpcPath;
  const { httpMethods } = rpc;
  if (!httpMethods.includes(head.httpMethod)) {
    return methodNotAllowed(routes, head, rpc, httpMethods.join(", "));
  }
  const isGet = head.httpMethod === "GET" && rpc.kind === "unary";
  const target = isGet ? routes.protocols.ofGet?.targetOfGet(rpc, query) : rpcPath.find(head.common.contentType ?? "");
  if (target !== undefined) return target;
  return unsupportedMediaType(routes, head, rpc, isGet);
}

function unsupportedMediaType(routes: Routes, head: RequestHead, rpc: Rpc, isGet: boolean): Unmatched {
  const { protocols } = routes;
  const error = isGet ? encodingError(rpc) : contentTypeError(head.common.contentType, rpc);
  const protocol = claimedBy(protocols, head);
  // If the RPC is not served in this protocol, REST responds instead.
  const isServed = [...protocol.targetsOf(rpc)].length > 0;
  const refused = { ...unmatchedTarget(protocol, error, rpc), responder: isServed ? protocol : protocols.rest };
  return refuseAtRpcPath(routes, head, refused);
}

/**
 * Returns the refusal for a wrong method or content type at an RPC's path, in most cases a status without a body.
 * Connect and gRPC clients would mistake a JSON body for an error in their protocol, and Connect's conformance suite
 * expects none. The response has a body if the error record is configured, and for requests that look like curl,
 * because no RPC client posts a form or omits the content type.
 */
function refuseAtRpcPath({ hasErrorRecord }: Routes, head: RequestHead, refused: Unmatched): Unmatched {
  const { contentType } = head.common;
  const looksLikeCurl = head.httpMethod === "POST" && (contentType === null || curlHint(contentType) !== "");
  return !hasErrorRecord && !looksLikeCurl ? { ...refused, responder: statusOnly } : refused;
}

const statusOnly: Pick<Protocol, "refuse"> = {
  refuse: (exchange, { httpStatus, fields }) => exchange.respond(httpStatus, fields, noBytes),
};

function notFound(routes: Routes, head: RequestHead, path: string): Unmatched {
  const { protocols } = routes;
  if (!routes.httpMethods.has(head.httpMethod)) return { ...methodUnknown(routes, head), unknown: true };
  const unavailable = refusalOfUnknownPath(routes, head, path);
  if (unavailable !== undefined) return { ...unavailable, unknown: true };
  const protocol = claimedBy(protocols, head);
  // In gRPC and Connect, an unknown RPC is unimplemented.
  const error =
    protocol === protocols.rest
      ? problem("ERR_NO_ROUTE", "no route matches this path")
      : problem("ERR_NO_ROUTE", "no route matches this path", { code: Code.Unimplemented, httpStatus: 404 });
  return { ...unmatchedTarget(protocol, error), unknown: true };
}

/** Returns the refusal from `onUnknownPath`, or `undefined` if there is none. */
function refusalOfUnknownPath(routes: Routes, head: RequestHead, path: string): Unmatched | undefined {
  const { protocols, httpMethods, onUnknownPath } = routes;
  const unavailable = httpMethods.has(head.httpMethod) ? onUnknownPath?.(path) : undefined;
  return unavailable && unmatchedTarget(claimedBy(protocols, head), unavailable);
}

/** Returns 405 (RFC 9110 §15.5.6), which must have Allow, for a method that the path does not support. */
function methodNotAllowed(routes: Routes, head: RequestHead, rpc: Rpc | undefined, allow: string): Unmatched {
  if (!routes.httpMethods.has(head.httpMethod)) return { ...methodUnknown(routes, head), rpc };
  const error = problem("ERR_METHOD_NOT_ALLOWED", `${shownMethod(head)} is not allowed for this path`);
  // The refusal contains no RPC, even if there is one at the path.
  const refused = { ...wrongMethod(routes, head, error, ["allow", allow]), rpc };
  return rpc === undefined ? refused : refuseAtRpcPath(routes, head, refused);
}

/** Returns 501 (RFC 9110 §9.1) for a method that no route has. */
function methodUnknown(routes: Routes, head: RequestHead): Unmatched {
  const error = problem("ERR_METHOD_UNKNOWN", `${shownMethod(head)} is not supported by this server`);
  return wrongMethod(routes, head, error, noFields);
}

function wrongMethod({ protocols }: Routes, head: RequestHead, error: ConnectError, fields: HeaderFields): Unmatched {
  const protocol = claimedBy(protocols, head);
  // A wrong method is an HTTP error, which a protocol without HTTP statuses cannot express.
  return {
    ...unmatchedTarget(protocol, error, undefined, fields),
    responder: protocol.hasHttpStatus ? protocol : protocols.rest,
  };
}

function shownMethod({ httpMethod }: RequestHead): string {
  return httpMethod.length <= shownMethodMax ? httpMethod : "this method";
}

/** Maximum number of characters that an error quotes from a method. In HTTP/2, a method may fill the whole header. */
const shownMethodMax = 32;

function encodingError({ codecs }: Rpc): ConnectError {
  return problem("ERR_CONTENT_TYPE", `query parameter "encoding" must be one of ${[...codecs.keys()].join(", ")}`);
}

function contentTypeError(contentType: string | null, { kind }: Rpc): ConnectError {
  if (contentType === null) return problem("ERR_CONTENT_TYPE", "the content type is missing");
  const hint = kind === "unary" ? curlHint(contentType) : "";
  return problem("ERR_CONTENT_TYPE", `the content type ${quote(contentType)} is not supported${hint}`);
}

/** Returns the target for a request that does not become a call and gets an error in this protocol. */
export function unmatchedTarget(
  protocol: Protocol,
  error: ConnectError,
  rpc?: Rpc,
  fields: HeaderFields = noFields,
): Unmatched {
  const refusal = { error, httpStatus: httpStatusOf(error), fields, rpc, target: undefined };
  return { kind: "unmatched", protocol, responder: protocol, refusal, rpc, unknown: false, pathTemplate: undefined };
}

const noFields: HeaderFields = [];

/**
 * A read-only map by path. Clients choose the paths that are looked up, and most are absent.
 *
 * V8 interns every string that is looked up in a `Map`. For a new string, such as a path with an id, that costs 0.3 to
 * 0.8 µs and an entry in its string table. So the `Map` is only consulted for strings that have the same length and two
 * characters as a key.
 */
export class PathIndex<Value> {
  readonly #values: ReadonlyMap<string, Value>;
  readonly #fingerprints: ReadonlySet<number>;

  /** Among entries with the same path, the last one applies. */
  constructor(entries: Iterable<readonly [string, Value]>) {
    this.#values = new Map(entries);
    this.#fingerprints = new Set([...this.#values.keys()].map(fingerprintOf));
  }

  [Symbol.iterator](): IterableIterator<[string, Value]> {
    return this.#values.entries();
  }

  get(text: string): Value | undefined {
    return this.#fingerprints.has(fingerprintOf(text)) ? this.#values.get(text) : undefined;
  }
}

// The masks keep this a small integer (V8's Smi), however long the string is.
function fingerprintOf(text: string): number {
  const { length } = text;
  return (
    ((length & 0x3fff) << 16) | ((text.charCodeAt(length - 1) & 0xff) << 8) | (text.charCodeAt(length >> 1) & 0xff)
  );
}
