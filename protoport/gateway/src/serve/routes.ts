import { Code, type ConnectError } from "@connectrpc/connect";
import { type Exchange, type HeaderFields, noBytes } from "../http/index.ts";
import { type HiddenParts, problem, quoteValue } from "../protobuf/index.ts";
import {
  type BodyTarget,
  type CallTarget,
  curlHint,
  type ErrorWire,
  httpStatusOf,
  type Mismatch,
  normalizeContentType,
  type PathTemplate,
  printPathTemplate,
  type Protocol,
  protocolForUnmatched,
  type Protocols,
  type RequestHead,
  type RestRoutes,
  type Rpc,
} from "../protocols/index.ts";
import type { Cors } from "./cors.ts";
import { type Endpoint, methodsOf, serverEndpoint } from "./endpoint.ts";

/** A request's target. The request's method, path and header determine the target. */
export type Target = CallTarget | BodyTarget | EndpointTarget | Unmatched;

interface EndpointTarget {
  readonly kind: "endpoint";
  readonly protocol: Protocol;
  readonly rpc: undefined;
  readonly endpoint: Endpoint;
  readonly httpMethods: readonly string[];
}

/** A request that does not become a call. */
interface Unmatched {
  readonly kind: "unmatched";
  /** The request's protocol, which writes the response if `admit` refuses the request. */
  readonly protocol: Protocol;
  /** The response once the request is admitted. */
  readonly error: ConnectError;
  /** Opens the wire that writes {@link error}. */
  open(exchange: Exchange): ErrorWire;
  /** Additional header fields, such as Allow. */
  readonly fields: HeaderFields;
  /** The RPC at this path, if the path matched but the method or the content type did not. */
  readonly rpc: Rpc | undefined;
  /** Whether no route matches this path, so that a `fallback` may handle the request. */
  readonly isUnknownPath: boolean;
  readonly pathTemplate: undefined;
}

/** An RPC's path, with the targets for POST requests. */
export class RpcPath {
  readonly kind = "rpc-path";
  readonly rpc: Rpc;
  readonly #protocols: readonly Protocol[];
  #targets: ReadonlyMap<string, CallTarget> | undefined;

  constructor(rpc: Rpc, protocols: readonly Protocol[]) {
    this.rpc = rpc;
    this.#protocols = protocols;
  }

  find(contentType: string): CallTarget | undefined {
    // Prepared with the first call, because many RPCs are never called.
    this.#targets ??= new Map(this.#protocols.flatMap((protocol) => [...protocol.targetsOf(this.rpc)]));
    // Nearly all clients send the content type in the normalized form.
    return this.#targets.get(contentType) ?? this.#targets.get(normalizeContentType(contentType));
  }
}

/** All possible request targets, indexed by path. */
export interface Routes {
  /** RPCs and endpoints, by their exact path with the prefix. */
  readonly paths: PathIndex<RpcPath | EndpointTarget>;
  readonly protocols: Protocols;
  /** The methods of all routes, and the methods in the IANA registry. */
  readonly httpMethods: ReadonlySet<string>;
  readonly prefix: string;
  /** Whether the application writes error records on REST. */
  readonly hasErrorRecord: boolean;
  /** The CORS protocol, or `undefined` if CORS is off. */
  readonly cors: Cors | undefined;
  /** The REST routes. The path prefix is not in the templates. */
  readonly rest: RestRoutes;
  /** Removes hidden fields and values from error details. `undefined` if messages have no hidden fields or values. */
  readonly hidden?: HiddenParts | undefined;
  /** All labels in the visibility rules of the handlers' services. */
  readonly visibilityLabels: ReadonlySet<string>;
  /**
   * Called with a path that no route matches. On REST, also called if no route with the request's method matches. A
   * proxy with incomplete routes returns an error that replaces 404 or 405. The error's status on REST is 503.
   */
  readonly onUnknownPath?: (path: string) => ConnectError | undefined;
}

/** Returns an index of RPCs and endpoints by path. */
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

/** Returns an endpoint's path. The path has the prefix unless the endpoint is at the root. */
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

/** Finds a request's target by method, request target and header, and calls `onUnknownPath` for an unknown path. */
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
        ...unmatchedTarget(protocolForUnmatched(protocols, head), problem("ERR_PATH_INVALID", found.message)),
        isUnknownPath: true,
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
  const protocol = protocolForUnmatched(protocols, head);
  // If the request's protocol does not serve the RPC, REST responds instead.
  const isServed = [...protocol.targetsOf(rpc)].length > 0;
  const refused = unmatchedTarget(protocol, error, rpc, noFields, isServed ? protocol : protocols.rest);
  return refuseAtRpcPath(routes, head, refused);
}

/**
 * Returns the refusal for a wrong method or content type at an RPC's path. In most cases, the response is a status
 * without a body. Connect and gRPC clients would mistake a JSON body for an error in their protocol, and Connect's
 * conformance suite expects no body. The response has a body if the error record is configured, or if the request looks
 * like curl. No RPC client posts a form or omits the content type.
 */
function refuseAtRpcPath({ hasErrorRecord }: Routes, head: RequestHead, refused: Unmatched): Unmatched {
  const { contentType } = head.common;
  const looksLikeCurl = head.httpMethod === "POST" && (contentType === null || curlHint(contentType) !== "");
  return !hasErrorRecord && !looksLikeCurl ? { ...refused, open: statusOnly(refused.fields) } : refused;
}

function statusOnly(fields: HeaderFields): Unmatched["open"] {
  return (exchange) => ({ writeError: (error) => exchange.respond(httpStatusOf(error), fields, noBytes) });
}

function notFound(routes: Routes, head: RequestHead, path: string): Unmatched {
  const { protocols } = routes;
  if (!routes.httpMethods.has(head.httpMethod)) return { ...methodUnknown(routes, head), isUnknownPath: true };
  const unavailable = refusalOfUnknownPath(routes, head, path);
  if (unavailable !== undefined) return { ...unavailable, isUnknownPath: true };
  const protocol = protocolForUnmatched(protocols, head);
  // In gRPC and Connect, an unknown RPC has the code Unimplemented.
  const error =
    protocol === protocols.rest
      ? problem("ERR_NO_ROUTE", "no route matches this path")
      : problem("ERR_NO_ROUTE", "no route matches this path", { code: Code.Unimplemented, httpStatus: 404 });
  return { ...unmatchedTarget(protocol, error), isUnknownPath: true };
}

/** Returns the refusal with the error from `onUnknownPath`, or `undefined` without an error. */
function refusalOfUnknownPath(routes: Routes, head: RequestHead, path: string): Unmatched | undefined {
  const { protocols, httpMethods, onUnknownPath } = routes;
  const unavailable = httpMethods.has(head.httpMethod) ? onUnknownPath?.(path) : undefined;
  return unavailable && unmatchedTarget(protocolForUnmatched(protocols, head), unavailable);
}

/** Returns a refusal 405 with the field `Allow` for a method that the path does not support (RFC 9110 §15.5.6). */
function methodNotAllowed(routes: Routes, head: RequestHead, rpc: Rpc | undefined, allow: string): Unmatched {
  if (!routes.httpMethods.has(head.httpMethod)) return { ...methodUnknown(routes, head), rpc };
  const error = problem("ERR_METHOD_NOT_ALLOWED", `${shownMethod(head)} is not allowed for this path`);
  // The refusal contains no RPC, even if the path names an RPC.
  const refused = { ...wrongMethod(routes, head, error, ["allow", allow]), rpc };
  return rpc === undefined ? refused : refuseAtRpcPath(routes, head, refused);
}

/** Returns a refusal 501 for a method that no route has (RFC 9110 §9.1). */
function methodUnknown(routes: Routes, head: RequestHead): Unmatched {
  const error = problem("ERR_METHOD_UNKNOWN", `${shownMethod(head)} is not supported by this server`);
  return wrongMethod(routes, head, error, noFields);
}

function wrongMethod({ protocols }: Routes, head: RequestHead, error: ConnectError, fields: HeaderFields): Unmatched {
  const protocol = protocolForUnmatched(protocols, head);
  // A wrong method is an HTTP error. A protocol without HTTP statuses cannot express this error.
  return unmatchedTarget(protocol, error, undefined, fields, protocol.hasHttpStatus ? protocol : protocols.rest);
}

function shownMethod({ httpMethod }: RequestHead): string {
  return httpMethod.length <= maxShownMethod ? httpMethod : "this method";
}

/** Maximum number of characters that an error quotes from a method. In HTTP/2, a method may fill the whole header. */
const maxShownMethod = 32;

function encodingError({ codecs }: Rpc): ConnectError {
  return problem("ERR_CONTENT_TYPE", `query parameter "encoding" must be one of ${Object.keys(codecs).join(", ")}`);
}

function contentTypeError(contentType: string | null, { kind }: Rpc): ConnectError {
  if (contentType === null) return problem("ERR_CONTENT_TYPE", "the content type is missing");
  const hint = kind === "unary" ? curlHint(contentType) : "";
  return problem("ERR_CONTENT_TYPE", `the content type ${quoteValue(contentType)} is not supported${hint}`);
}

/**
 * Returns the target for a request that is refused with an error in the given protocol.
 *
 * @param responder - the protocol that writes the error
 */
export function unmatchedTarget(
  protocol: Protocol,
  error: ConnectError,
  rpc?: Rpc,
  fields: HeaderFields = noFields,
  responder: Protocol = protocol,
): Unmatched {
  return {
    kind: "unmatched",
    protocol,
    error,
    fields,
    open: (exchange) => responder.openError(exchange, fields, rpc),
    rpc,
    isUnknownPath: false,
    pathTemplate: undefined,
  };
}

const noFields: HeaderFields = [];

/**
 * A read-only map by path. Clients choose the paths for lookups, and most of these paths are absent.
 *
 * V8 interns every string that is looked up in a `Map`. For a new string, such as a path with an id, interning costs
 * 0.3 to 0.8 µs and an entry in V8's string table. Lookups in the `Map` are limited to strings with the same length and
 * the same two characters as a key.
 */
export class PathIndex<Value> {
  readonly #values: ReadonlyMap<string, Value>;
  readonly #fingerprints: ReadonlySet<number>;

  /** If several entries have the same path, the last entry applies. */
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

// The masks limit the fingerprint to a small integer (V8's Smi), however long the string is.
function fingerprintOf(text: string): number {
  const { length } = text;
  return (
    ((length & 0x3fff) << 16) | ((text.charCodeAt(length - 1) & 0xff) << 8) | (text.charCodeAt(length >> 1) & 0xff)
  );
}

/** A path that a gateway serves. An RPC has a route for the RPC protocols, and a route for each HTTP rule. */
export interface GatewayRoute {
  /**
   * The HTTP methods that the route accepts, where `*` means every method. Rules with GET include HEAD. OPTIONS is
   * included if the gateway responds to CORS preflights.
   */
  readonly httpMethods: readonly string[];
  /** The path with the gateway's prefix, such as `/shop.v1.Shop/GetOrder`. A REST route has a path template. */
  readonly path: string;
  /** A REST route's parsed template, without the prefix. `undefined` for other routes. */
  readonly template: PathTemplate | undefined;
  /** `/package.Service/Method` of the RPC, or `undefined` for a path of an endpoint or of MCP. */
  readonly procedure: string | undefined;
}

/** Returns all routes. `OPTIONS *` is excluded because it has no path. */
export function listRoutes({ paths, protocols, prefix, cors, rest }: Routes): readonly GatewayRoute[] {
  const preflight = cors === undefined ? [] : ["OPTIONS"];
  const route = (
    httpMethods: readonly string[],
    path: string,
    procedure?: string,
    template?: PathTemplate,
  ): GatewayRoute => ({ httpMethods: [...new Set([...httpMethods, ...preflight])], path, template, procedure });
  const exact = [...paths].map(([path, target]) =>
    target.kind === "endpoint" ? route(target.httpMethods, path) : route(target.rpc.httpMethods, path, target.rpc.name),
  );
  const ofBodies = protocols.all.flatMap(({ bodyPath }) =>
    bodyPath === undefined ? [] : [route(["POST"], prefix + bodyPath)],
  );
  const ofRules = rest.bindings.map(({ pattern: { httpMethod }, procedure, template }) =>
    route(
      httpMethod === "GET" ? ["GET", "HEAD"] : [httpMethod],
      prefix + printPathTemplate(template),
      procedure,
      template,
    ),
  );
  return [...exact.filter(({ path }) => path !== serverEndpoint.path), ...ofBodies, ...ofRules];
}
