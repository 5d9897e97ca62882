import { Code, type ConnectError } from "@connectrpc/connect";
import { codedError } from "../errors/index.ts";
import type { Exchange, HeaderFields } from "../carriers/index.ts";
import {
  callerProtocol,
  createRpcTargets,
  findGetTarget,
  findRpcTarget,
  type Procedure,
  type Protocol,
  type RpcTargets,
  type StreamTarget,
  type UnaryTarget,
} from "../protocols/index.ts";
import { quote } from "../json/index.ts";
import { curlHint, type RestBinding, type RestMatch, type RestRoutes } from "../rest/index.ts";
import { type Endpoint, methodsOf } from "./endpoint.ts";

/** What a request asks for, judged by its method, path and header alone. */
export type Match = UnaryTarget | StreamTarget | EndpointTarget | Unmatched;

/** An {@link Endpoint} that a request asks for. */
export interface EndpointTarget {
  readonly kind: "endpoint";
  readonly protocol: "rest";
  readonly procedure: undefined;
  readonly endpoint: Endpoint;
  /** The methods that it answers. */
  readonly httpMethods: readonly string[];
}

/** A request that matches no RPC, and the answer to it once it is admitted. */
export interface Unmatched {
  readonly kind: "unmatched";
  /** The protocol of the answer. */
  readonly protocol: Protocol;
  readonly httpStatus: number;
  readonly error: ConnectError;
  /** The RPC at this path, if only the method or the content type was wrong. */
  readonly procedure: Procedure | undefined;
  /** Whether nothing at all is known at this path: a `fallback` may take the request. */
  readonly unknown: boolean;
  readonly fields: HeaderFields;
}

/** An RPC at its path. */
class RpcPath {
  readonly kind = "rpc-path";
  readonly procedure: Procedure;
  #targets: RpcTargets | undefined;

  constructor(procedure: Procedure) {
    this.procedure = procedure;
  }

  /** What requests of each content type ask for there; made for the first one, because many RPCs never have any. */
  get targets(): RpcTargets {
    return (this.#targets ??= createRpcTargets(this.procedure));
  }
}

/** Everything that a request can ask for, indexed by path. */
export interface MatchTable {
  /** RPCs and endpoints, by their exact path with the prefix. */
  readonly paths: PathIndex<RpcPath | EndpointTarget>;
  readonly rest: RestRoutes;
  /** The procedure of each binding. */
  readonly procedureOf: ReadonlyMap<RestBinding, Procedure>;
  readonly prefix: string;
}

/**
 * Creates the match table of a gateway.
 *
 * @param prefix - the path below which everything lies except endpoints that are {@link Endpoint.atRoot}
 */
export function createMatchTable(
  procedures: readonly Procedure[],
  endpoints: readonly Endpoint[],
  rest: RestRoutes,
  prefix: string,
): MatchTable {
  const byName = new Map(procedures.map((procedure) => [procedure.name, procedure]));
  const procedureOf = new Map<RestBinding, Procedure>();
  for (const binding of rest.bindings) {
    const procedure = byName.get(binding.procedure);
    if (procedure !== undefined) procedureOf.set(binding, procedure);
  }
  const paths = new PathIndex<RpcPath | EndpointTarget>([
    ...procedures.map((procedure) => [prefix + procedure.name, new RpcPath(procedure)] as const),
    ...endpoints.map((endpoint) => [fullPathOf(endpoint, prefix), targetOf(endpoint)] as const),
  ]);
  return { paths, rest, procedureOf, prefix };
}

/** Returns the path of an endpoint with the prefix that it has. */
export function fullPathOf({ atRoot, path }: Endpoint, prefix: string): string {
  return atRoot === true ? path : prefix + path;
}

function targetOf(endpoint: Endpoint): EndpointTarget {
  return { kind: "endpoint", protocol: "rest", procedure: undefined, endpoint, httpMethods: methodsOf(endpoint) };
}

/** The parts of a request that its match depends on. */
export type MatchInput = Pick<Exchange, "httpMethod" | "target" | "common">;

/** Finds what a request asks for. Pure: depends only on method, target and header. */
export function matchRequest(table: MatchTable, input: MatchInput): Match {
  const { target } = input;
  const questionMark = target.indexOf("?");
  const fullPath = questionMark < 0 ? target : target.slice(0, questionMark);
  const query = questionMark < 0 ? "" : target.slice(questionMark + 1);
  const known = table.paths.get(fullPath);
  if (known !== undefined)
    return known.kind === "endpoint" ? matchEndpoint(known, input) : matchRpc(known, input, query);
  if (!fullPath.startsWith(table.prefix)) return notFound(input);
  const path = table.prefix === "" ? fullPath : fullPath.slice(table.prefix.length);
  const found = table.rest.match(input.httpMethod, path);
  if (found.kind !== "binding") return unmatchedRest(found, input);
  const { binding, captures } = found;
  const bound = table.procedureOf.get(binding);
  if (bound === undefined) return notFound(input);
  if (bound.kind === "unary") return { kind: "rest", protocol: "rest", procedure: bound, binding, captures, query };
  return { kind: "rest-stream", protocol: "rest", procedure: bound, binding, captures, query };
}

function matchEndpoint(target: EndpointTarget, input: MatchInput): Match {
  const { httpMethods } = target;
  return httpMethods.includes(input.httpMethod) ? target : methodNotAllowed(input, undefined, httpMethods.join(", "));
}

function unmatchedRest(found: Exclude<RestMatch, { kind: "binding" }>, input: MatchInput): Unmatched {
  switch (found.kind) {
    case "method-not-allowed":
      return methodNotAllowed(input, undefined, found.allow);
    case "not-found":
      return notFound(input);
    case "malformed":
      return {
        ...unmatched(input, 400, codedError("ERR_PATH_INVALID", found.message, Code.InvalidArgument)),
        unknown: true,
      };
  }
}

function matchRpc({ procedure, targets }: RpcPath, input: MatchInput, query: string): Match {
  const { httpMethods } = procedure;
  if (!httpMethods.includes(input.httpMethod)) {
    return methodNotAllowed(input, procedure, httpMethods.join(", "));
  }
  if (input.httpMethod === "GET" && procedure.kind === "unary") {
    return findGetTarget(procedure, new URLSearchParams(query)) ?? unsupportedMediaType(input, procedure);
  }
  const contentType = input.common.contentType ?? "";
  // Nearly all clients spell it as the protocols do.
  const target = targets.get(contentType) ?? findRpcTarget(targets, contentType);
  return target ?? unsupportedMediaType(input, procedure);
}

function notFound(input: MatchInput): Unmatched {
  const protocol = protocolOf(input);
  // To gRPC and Connect, an RPC that does not exist is unimplemented.
  const code = protocol === "rest" ? Code.NotFound : Code.Unimplemented;
  return { ...unmatched(input, 404, codedError("ERR_NO_ROUTE", "there is nothing at this path", code)), unknown: true };
}

function methodNotAllowed(input: MatchInput, procedure: Procedure | undefined, allow: string): Unmatched {
  const { httpMethod } = input;
  const shown = httpMethod.length <= shownMethodMax ? httpMethod : "this method";
  const error = codedError("ERR_METHOD_NOT_ALLOWED", `${shown} is not allowed here`, Code.Unimplemented);
  // RFC 9110 §15.5.6: a 405 must carry Allow.
  return { ...unmatched(input, 405, error), procedure, fields: ["allow", allow] };
}

/** Characters of the longest method that an error repeats: HTTP/2 lets one fill the whole header. */
const shownMethodMax = 32;

function unsupportedMediaType(input: MatchInput, procedure: Procedure): Unmatched {
  return { ...unmatched(input, 415, contentTypeError(input.common.contentType, procedure)), procedure };
}

function contentTypeError(contentType: string | null, { kind }: Procedure): ConnectError {
  if (contentType === null) return codedError("ERR_CONTENT_TYPE", "the content type is missing", Code.InvalidArgument);
  const hint = kind === "unary" ? curlHint(contentType) : "";
  return codedError(
    "ERR_CONTENT_TYPE",
    `the content type ${quote(contentType)} is not supported${hint}`,
    Code.InvalidArgument,
  );
}

function unmatched(input: MatchInput, httpStatus: number, error: ConnectError): Unmatched {
  const protocol = protocolOf(input);
  return { kind: "unmatched", protocol, httpStatus, error, procedure: undefined, unknown: false, fields: [] };
}

function protocolOf(input: MatchInput): Protocol {
  const { contentType, connectProtocolVersion } = input.common;
  return callerProtocol(contentType ?? "", connectProtocolVersion !== null);
}

/**
 * A read-only map by path. Clients choose which path is looked up, and most are absent.
 *
 * V8 interns every string that is looked up in a `Map`. For a string it has not seen before, such as a path with an id,
 * that costs 0.3 to 0.8 µs and an entry in its table of strings. So the `Map` is consulted only for texts that have the
 * length and two characters of one of its keys.
 */
export class PathIndex<Value> {
  readonly #values: ReadonlyMap<string, Value>;
  readonly #fingerprints: ReadonlySet<number>;

  /** Of several entries with the same path, the last one counts. */
  constructor(entries: Iterable<readonly [string, Value]>) {
    this.#values = new Map(entries);
    this.#fingerprints = new Set([...this.#values.keys()].map(fingerprintOf));
  }

  get(text: string): Value | undefined {
    return this.#fingerprints.has(fingerprintOf(text)) ? this.#values.get(text) : undefined;
  }
}

// The masks keep this a small integer (Smi) of V8's, however long the text is.
function fingerprintOf(text: string): number {
  const { length } = text;
  return (
    ((length & 0x3fff) << 16) | ((text.charCodeAt(length - 1) & 0xff) << 8) | (text.charCodeAt(length >> 1) & 0xff)
  );
}
