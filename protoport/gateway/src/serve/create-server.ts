import type { ConnectError, ConnectRouter, ConnectRouterOptions, HandlerContext } from "@connectrpc/connect";
import type { Compression, UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import {
  arrayOf,
  defaultLimits,
  defaultReadMaxBytes,
  integerBetween,
  isProduction,
  type Limits,
  type OptionNames,
  refusePromise,
  type RequestFailure,
  required,
  requireName,
  runSteps,
  type TrustedProxies,
  withCode,
  withDefaultLimits,
} from "../http/index.ts";
import {
  memoize,
  type OptionLabels,
  type ReadJsonOptions,
  visibilityOptionNames,
  type VisibilityOptions,
} from "../protobuf/index.ts";
import {
  type Admit,
  type AdmitRequest,
  compileInSteps,
  type CompletedRequest,
  contentTypeOf,
  createErrorRecordWriter,
  createMethodCodecs,
  createProtocols,
  creatorOf,
  errorFormOf,
  fixedPathOf,
  type ProtocolExtension,
  restOptionNames,
  type RestOptions,
  type RestRoutes,
  withoutRpcs,
} from "../protocols/index.ts";
import { corsOptionNames, type CorsOptions, createCors } from "./cors.ts";
import { createRpcs, type RpcPlatform } from "./create-rpcs.ts";
import { type Endpoint, methodsOf, refuseUnusableEndpoint } from "./endpoint.ts";
import { callbackFailure, type FaultReporter, guardCallback, type OnFault } from "./faults.ts";
import { routerOptionNames } from "./router-options.ts";
import { indexPaths, type Routes } from "./routes.ts";
import type { Server } from "./server.ts";
import { toConnectError, toFault } from "./to-connect-error.ts";
import type { Validation } from "./validation.ts";

/** The options of every gateway, independent of the HTTP server, including the options of `connectNodeAdapter`. */
export interface ServingOptions extends ConnectRouterOptions {
  /** Registers the services, like the option `routes` of `connectNodeAdapter`. */
  readonly routes: (router: ConnectRouter) => void;
  /** The path prefix for all RPCs, rules and endpoints, for example `/api`. */
  readonly requestPathPrefix?: string;
  /** Admits or refuses each request by its header, before a byte of its body is read. */
  readonly admit?: Admit;
  /** Options for REST and JSON that deviate from the standard mapping. */
  readonly rest?: RestOptions;
  /**
   * Checks requests by the rules in their definition, before the handler gets a request, on every protocol. Set to
   * `await openValidation()` from `@protoport/gateway/validation`. Off by default.
   */
  readonly validation?: Validation;
  /**
   * Hides services, RPCs, fields, enums and values whose `google.api.visibility` rule has no label in `allow`. By
   * default, no element is hidden. Hidden elements are unknown on every protocol. Handlers and interceptors use
   * complete messages. For OpenAPI and reflection, use `visibleServices`.
   */
  readonly visibility?: VisibilityOptions;
  /** Plain HTTP resources in addition to the RPCs, such as probes and webhooks. */
  readonly endpoints?: readonly Endpoint[];
  /** Allows pages from other origins to call over REST, Connect and gRPC-Web. Off by default. */
  readonly cors?: CorsOptions;
  /**
   * `"allow"` also serves POST requests that pages of other sites send without a preflight, with the user's cookies. By
   * default, `"refuse"`, they get 403 unless `cors.origins` lists the page's origin.
   */
  readonly crossSite?: "allow" | "refuse";
  readonly limits?: Partial<Limits>;
  /**
   * Serves RPCs as Model Context Protocol tools. Set to the result of `createMcp` from `@protoport/gateway/mcp`. By
   * default, MCP is off and its code is not loaded.
   */
  readonly mcp?: ProtocolExtension;
  /**
   * Whether to generate code at run time, with `new Function`, that reads and writes messages. Default true. Without
   * generated code, the results are the same, and reading and writing a message takes 1.6 to 5 times as long. On a
   * runtime that forbids code generation, no code is generated.
   */
  readonly codegen?: boolean;
  /**
   * Called with every request before `admit`, for example to set context values. Thrown errors are passed to {@link
   * onFault}, once per cause.
   */
  readonly onRequest?: (request: AdmitRequest) => void;
  /**
   * Returns the error to respond with for a value that a handler or an interceptor has thrown. By default, a
   * `ConnectError` is sent unchanged. Any other value is passed to {@link onFault}, and clients get `Internal` without
   * the value's message. Errors thrown by `toError` are also passed to {@link onFault}.
   */
  readonly toError?: (thrown: unknown, context: HandlerContext) => ConnectError;
  /** Called before an error response is sent. Thrown errors are passed to {@link onFault}, once per cause. */
  readonly onError?: (request: AdmitRequest, error: ConnectError) => void;
  /**
   * Whether the error for a refused request names the option that would accept the request. An object replaces the
   * names of options in errors. By default, false if the environment variable NODE_ENV is `production`, otherwise true.
   * In {@link onError}, `optionOf(error)` returns the option even if `nameOptions` is false.
   */
  readonly nameOptions?: boolean | OptionLabels;
  /** Called after every response. Thrown errors are passed to {@link onFault}, once per cause. */
  readonly onResponse?: (request: CompletedRequest) => void;
  /**
   * Called with the server's faults, which no response reveals. Examples are a handler or an `admit` that threw a value
   * other than a `ConnectError`, a response that cannot be written, and a callback that failed. By default, faults are
   * printed on standard error with procedure, request id and stack, at most 20 faults in 10 seconds.
   */
  readonly onFault?: OnFault;
}

// node:http2 announces four times `headerBytes` in 32 bits.
const headBytes = integerBetween(1, 2 ** 30 - 1);
const timeoutMs = integerBetween(1, Number.POSITIVE_INFINITY);

/** The names of all {@link Limits}, with their values. Larger values fail only when a client connects. */
const limitNames: OptionNames<Partial<Limits>> = {
  headerBytes: headBytes,
  urlBytes: headBytes,
  headerTimeoutMs: timeoutMs,
  requestTimeoutMs: timeoutMs,
  idleTimeoutMs: timeoutMs,
  concurrentStreams: integerBetween(1, 2 ** 32 - 1),
  connectionWindowBytes: integerBetween(1, 2 ** 31 - 1),
  backlogBytes: integerBetween(1, Number.MAX_SAFE_INTEGER),
  connections: integerBetween(1, Number.POSITIVE_INFINITY),
  defaultTimeoutMs: integerBetween(0, Number.POSITIVE_INFINITY),
};

/** The names of all {@link ServingOptions}. */
export const servingOptionNames: OptionNames<ServingOptions> = {
  ...routerOptionNames,
  routes: required,
  requestPathPrefix: true,
  admit: true,
  rest: restOptionNames,
  validation: true,
  visibility: visibilityOptionNames,
  endpoints: arrayOf(),
  cors: corsOptionNames,
  crossSite: true,
  limits: limitNames,
  mcp: true,
  codegen: true,
  onRequest: true,
  toError: true,
  onError: true,
  nameOptions: true,
  onResponse: true,
  onFault: true,
};

/** The platform-dependent inputs for compiling routes. */
export interface Platform extends RpcPlatform {
  /** The default for `acceptCompression`, with the preferred compression first. */
  readonly compressions: readonly Compression[];
  /** The HTTP methods that the parser accepts. Rules for other methods are rejected. Default: every token. */
  readonly parsedMethods?: Pick<ReadonlySet<string>, "has">;
}

/** Creates a gateway's server from the compiled routes. */
export function createServer(
  options: Omit<ServingOptions, "routes">,
  routes: Routes,
  report: FaultReporter,
  trustedProxies: TrustedProxies | undefined,
): Server {
  const limits = withDefaultLimits(options.limits, defaultLimits);
  const { nameOptions = !isProduction(), crossSite = "refuse" } = options;
  requireName({ allow: true, refuse: true }, crossSite, "crossSite");
  return {
    routes,
    admit: options.admit,
    allowsCrossSite: crossSite === "allow",
    toError: guardToError(options.toError),
    onRequest: guardCallback("onRequest", options.onRequest, report),
    onError: guardCallback("onError", options.onError, report),
    onResponse: guardCallback("onResponse", options.onResponse, report),
    optionLabels: typeof nameOptions === "object" ? nameOptions : nameOptions ? undefined : {},
    report,
    limits,
    defaultTimeoutMs: limits.defaultTimeoutMs > 0 ? limits.defaultTimeoutMs : undefined,
    trustedProxies,
  };
}

/**
 * Compiles the routes.
 *
 * @throws Error that lists all problems in the HTTP rules and `requestPathPrefix`, or for an endpoint method that the
 * parser does not accept
 */
export function compileRoutes(options: ServingOptions, platform: Platform, report: FaultReporter): Routes {
  return runSteps(compileRoutesInSteps(options, platform, report));
}

/** Compiles the routes as {@link compileRoutes} does. Yields a few times per RPC. */
export function* compileRoutesInSteps(
  userOptions: ServingOptions,
  ownPlatform: Platform,
  report: FaultReporter,
): Generator<void, Routes> {
  const [options, platform] =
    userOptions.codegen === false ? withoutCodegen(userOptions, ownPlatform) : [userOptions, ownPlatform];
  const { routes, rest = {}, requestPathPrefix: prefix = "", endpoints: allEndpoints = [], mcp } = options;
  requireFunction(routes);
  for (const endpoint of allEndpoints) refuseUnusableEndpoint(endpoint);
  const onIgnored = guardCallback("rest.onIgnored", rest.onIgnored, report);
  const { rpcs, registry, hiddenRpcs, ...visibility } = yield* createRpcs(
    routes,
    withDefaults(options, platform.compressions),
    ({ jsonOptions }) => ({ ...jsonRulesOf(jsonOptions), ...rest.json }),
    platform,
    options,
  );
  const jsonOptions = { ...options.jsonOptions, registry };
  const writeErrorRecord = createErrorRecordWriter(
    rest.errorRecord,
    registry,
    { form: errorFormOf(rest), template: rest.errorBody, contentType: contentTypeOf(rest) },
    (error) => report(error, callbackFailure("rest.errorRecord")),
  );
  yield;
  const restRoutes = yield* compileInSteps(
    rpcs.map(({ method }) => method),
    {
      ...withoutRpcs(rest, hiddenRpcs),
      json: { ...jsonRulesOf(jsonOptions), ...rest.json },
      writeJson: jsonOptions,
      ...(onIgnored && { onIgnored }),
    },
    {
      reservedPaths: listPaths(allEndpoints, mcp),
      requestPathPrefix: prefix,
      ...(platform.parsedMethods && { parsedMethods: platform.parsedMethods }),
      hidesFields: ({ input, output }) => visibility.hidden?.mayBeIn([input, output]) === true,
    },
  );
  const ruled = new Set(restRoutes.bindings.map(({ template }) => fixedPathOf(template)));
  const endpoints = allEndpoints.filter(({ path, yieldsToRules }) => yieldsToRules !== true || !ruled.has(path));
  const httpMethods = listMethods(restRoutes, endpoints, platform.parsedMethods);
  yield;
  const corsOrigins = options.cors?.origins;
  const isIncomplete = rest.ignoreUnregistered ?? false;
  const protocols = createProtocols({ rpcs, restRoutes, writeErrorRecord, registry, corsOrigins, isIncomplete }, mcp);
  const cors = options.cors === undefined ? undefined : createCors(options.cors, httpMethods);
  return {
    paths: indexPaths(rpcs, endpoints, protocols, prefix),
    protocols,
    httpMethods: new Set([...registeredMethods, ...httpMethods]),
    prefix,
    hasErrorRecord: rest.errorRecord !== undefined,
    cors,
    rest: restRoutes,
    ...visibility,
  };
}

function withDefaults(options: ServingOptions, compressions: readonly Compression[]): ServingOptions {
  return {
    ...options,
    acceptCompression: options.acceptCompression ?? [...compressions],
    readMaxBytes: options.readMaxBytes ?? defaultReadMaxBytes,
  };
}

function requireFunction(routes: unknown): void {
  if (typeof routes === "function") return;
  const problem = `routes must be a function that registers services, got ${typeof routes}`;
  throw withCode(new TypeError(problem), "ERR_OPTIONS");
}

/** Returns the paths below the prefix that no rule may have. @throws TypeError if `mcp` is not from `createMcp` */
function listPaths(endpoints: readonly Endpoint[], mcp: ProtocolExtension | undefined): readonly string[] {
  const paths = endpoints.filter((one) => one.atRoot !== true && one.yieldsToRules !== true).map(({ path }) => path);
  if (mcp === undefined) return paths;
  if (creatorOf(mcp) !== undefined) return [...paths, mcp.path];
  throw withCode(new TypeError("mcp must be the result of createMcp()"), "ERR_OPTIONS");
}

/** Returns the methods of REST rules and endpoints. @throws Error for an endpoint method that is not parsed */
function listMethods(
  { bindings }: RestRoutes,
  endpoints: readonly Endpoint[],
  parsedMethods: Platform["parsedMethods"],
): readonly string[] {
  const endpointRoutes = endpoints.flatMap((endpoint) => {
    const methods = methodsOf(endpoint);
    const unknown = methods.find((method) => parsedMethods?.has(method) === false);
    if (unknown === undefined) return methods;
    throw withCode(
      new Error(`endpoint ${endpoint.path}: the HTTP/1.1 parser does not accept the method "${unknown}"`),
      "ERR_OPTIONS",
    );
  });
  return [...bindings.map(({ pattern }) => pattern.httpMethod), ...endpointRoutes];
}

/** Wraps the application's `toError`. An error thrown by `toError` ends the call, and is reported as a fault. */
function guardToError(convert: ServingOptions["toError"] = toErrorDefault): typeof convert {
  return (thrown, context) => {
    try {
      return refusePromise(convert(thrown, context), "toError must be synchronous");
    } catch (fault) {
      return toFault(fault, callbackFailure("toError"));
    }
  };
}

/** The default of `toError`. */
export function toErrorDefault(thrown: unknown): ConnectError {
  return toConnectError(thrown, callFailure);
}

const callFailure: RequestFailure = { errorCode: "ERR_HANDLER_FAILED", what: "a handler or an interceptor failed" };

/** Returns the options for reading JSON. By default, unknown fields are ignored, as in Connect. */
function jsonRulesOf(options: ConnectRouterOptions["jsonOptions"]): ReadJsonOptions {
  const unknownFields = options?.ignoreUnknownFields === false ? "reject" : "ignore";
  return { unknownFields, ...(options?.registry && { registry: options.registry }) };
}

/**
 * The methods in the IANA HTTP Method Registry (RFC 9110 §16.1.1), and QUERY (RFC 10008). Any other method is unknown
 * unless a rule or an endpoint accepts the method.
 */
const registeredMethods: readonly string[] = (
  "ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR " +
  "MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PRI PROPFIND PROPPATCH PUT QUERY REBIND REPORT " +
  "SEARCH TRACE UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL"
).split(" ");

const noCodegen = { codegen: false } as const;

/** Returns options and platform for a gateway that generates no code, even for services with separate options. */
function withoutCodegen<
  Options extends ConnectRouterOptions & { readonly rest?: RestOptions },
  OwnPlatform extends RpcPlatform,
>(options: Options, platform: OwnPlatform): readonly [Options, OwnPlatform] {
  const { createCodecs = createMethodCodecs } = platform;
  // The result is cached per options object, because JSON writers are cached by their options object.
  const withFormats = memoize((own: UniversalHandlerOptions) => ({
    ...own,
    binaryOptions: { ...own.binaryOptions, ...noCodegen },
    jsonOptions: { ...own.jsonOptions, ...noCodegen },
  }));
  const jsonOptions = { ...options.jsonOptions, ...noCodegen };
  const rest = { ...options.rest, json: { ...options.rest?.json, ...noCodegen } };
  return [
    { ...options, jsonOptions, rest },
    { ...platform, createCodecs: (method, own, rules) => createCodecs(method, withFormats(own), rules) },
  ];
}
