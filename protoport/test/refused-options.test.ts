import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createGrpcTransport, createUpstream } from "../proxy/src/client/entry.ts";
import { createProxy } from "../proxy/src/create-proxy.ts";
import { checkDefinition, compareDefinitions, parseDefinition, writeOpenApi } from "../proxy/src/definitions/entry.ts";
import { createDocsPage } from "../docs-page/src/index.ts";
import { createFetchGateway } from "../gateway/src/fetch/entry.ts";
import { expressConnectMiddleware } from "../frameworks/src/express.ts";
import { fastifyConnectPlugin, type FastifyLike } from "../frameworks/src/fastify.ts";
import { createHealthService, drainGracefully, Readiness } from "../gateway/src/health/index.ts";
import { createGateway } from "../gateway/src/index.ts";
import { createOpenApi, documentBaseOf } from "../gateway/src/openapi/entry.ts";
import { createMcp } from "../gateway/src/mcp/index.ts";
import { openValidation } from "../gateway/src/validation/index.ts";
import { createRequestMetrics, Metrics } from "../telemetry/src/metrics/index.ts";
import { createTracing, withOpenTelemetry } from "../telemetry/src/opentelemetry/index.ts";
import { addGrpcJsService } from "../grpc-handlers/src/grpc-js.ts";
import { createRestTransport } from "../rest-client/src/index.ts";
// oxfmt-ignore
import { createBearerAuth, createRateLimit, createResourceMetadata, issueToken, limitRates, openTokenVerifier,
  type TokenVerifier } from "../auth/src/index.ts";
import { watchFile } from "../auth/src/inputs/index.ts";
import { createCallLog, createSafeErrors, silentLog } from "../telemetry/src/logs/index.ts";
import { KitchenSink, SinkSchema } from "../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { descriptorSetOf } from "../testing/src/gateway/descriptor-set.ts";
import { describeRequiredOptions, describeUnknownOptions } from "../testing/src/options/unknown-options.ts";
import { protoportTree } from "./support/source-files.ts";
import { ConnectModule, type ConnectModuleOptions } from "../frameworks/src/nestjs.ts";

// The public API refuses unknown names in every options object. Its types are read from the sources; add new ones here.

const routes = (): void => undefined;
const sink = (router: ConnectRouter): unknown => router.service(KitchenSink, {});
const info = { title: "t", version: "1" };
const readiness = new Readiness({});
const rejectAll: TokenVerifier = { verify: () => ({ kind: "unknown", reason: "none is known" }) };
const upstream = { upstream: "http://127.0.0.1:1", descriptors: new Uint8Array() };
const source = { issuer: "https://issuer.example", audiences: ["a"] };
const [timer, anyTime] = ["1 and 2147483647", "0 and Infinity"];
// oxfmt-ignore
const timings = { refreshMs: timer, usableMs: anyTime, unknownKeyGapMs: anyTime, coolDownMs: anyTime, fetchMs: timer,
  backOffMs: timer, maxBackOffMs: timer };
const retry = { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1, retryableCodes: [] };
const file = {
  paths: [],
  what: "file",
  limitBytes: 1,
  apply: () => ({ kind: "value", value: {} }) as const,
  log: silentLog,
};
// oxfmt-ignore
const fastify: FastifyLike = {
  prefix: "", server: process, log: { error: () => undefined, warn: () => undefined },
  removeAllContentTypeParsers: () => undefined, addContentTypeParser: () => undefined, addHook: () => undefined,
  hasRoute: () => false, route: () => undefined,
};
const address = { host: "127.0.0.1", port: 0 };
const kitchenSink = descriptorSetOf(KitchenSink.file);
const definition = parseDefinition("sink", kitchenSink);

/** Passes an object with unknown names to the API, for each type. */
const gives: Readonly<Record<string, (wrong: object) => unknown>> = {
  GatewayOptions: (wrong) => createGateway({ routes, ...wrong }),
  ServingOptions: (wrong) => createFetchGateway({ routes, ...wrong }),
  FastifyConnectOptions: (wrong) => fastifyConnectPlugin(fastify, { routes, ...wrong }),
  GrpcJsOptions: (wrong) => addGrpcJsService(createConnectRouter(), {}, {}, wrong),
  MountOptions: (wrong) => expressConnectMiddleware({ routes, ...wrong }),
  RestOptions: (rest) => createGateway({ routes, rest }),
  ReadJsonOptions: (json) => createFetchGateway({ routes, rest: { json } }),
  RestServiceOptions: (wrong) => createGateway({ routes: sink, rest: { service: () => wrong } }),
  CorsOptions: (wrong) => createGateway({ routes, cors: { origins: "*", ...wrong } }),
  Limits: (limits) => createGateway({ routes, limits }),
  TrustedProxiesOptions: (wrong) => createGateway({ routes, trustedProxies: { addresses: [], ...wrong } }),
  ListenOptions: (wrong) => createGateway({ routes }).listen({ ...address, ...wrong }),
  ConnectionAgeOptions: (wrong) => createGateway({ routes }).listen({ ...address, ...wrong }),
  BindOptions: (wrong) => createGateway({ routes }).listen({ ...address, ...wrong }),
  ValidationOptions: (wrong) => openValidation(wrong),
  McpOptions: (wrong) => createMcp({ tools: [], ...wrong }),
  McpStreamLimits: (stream) => createMcp({ tools: [], stream }),
  McpToolOptions: (wrong) => createGateway({ routes: sink, mcp: createMcp({ tools: () => ({ ...wrong }) }) }),
  McpToolHints: (hints) => createGateway({ routes: sink, mcp: createMcp({ tools: () => ({ hints }) }) }),
  OpenApiOptions: (wrong) => createOpenApi([], { info, ...wrong }),
  SecurityOptions: (wrong) => createOpenApi([], { info, ...wrong }),
  OpenApiBase: (wrong) => createOpenApi([], documentBaseOf([], wrong)),
  DocumentOptions: (wrong) => writeOpenApi(definition, wrong),
  CheckOptions: (wrong) => checkDefinition(definition, wrong),
  ComparisonOptions: (wrong) => compareDefinitions(definition, definition, wrong),
  OpenApiError: (wrong) =>
    createOpenApi([], { info, errors: [{ status: "4XX", description: "d", record: SinkSchema, ...wrong }] }),
  GrpcTransportOptions: (wrong) => createGrpcTransport({ baseUrl: "http://127.0.0.1:1", ...wrong }),
  RetryPolicy: (wrong) => createGrpcTransport({ baseUrl: "http://127.0.0.1:1", retry: { ...retry, ...wrong } }),
  UpstreamOptions: (wrong) => createUpstream({ addresses: "http://127.0.0.1:1", ...wrong }),
  UpstreamLimits: (limits) => createUpstream({ addresses: "http://127.0.0.1:1", limits }),
  ProxyOptions: (wrong) => createProxy({ upstreams: [], ...wrong }),
  ProxiedUpstreamOptions: (wrong) => createProxy({ upstreams: [{ ...upstream, ...wrong }] }),
  VisibilityOptions: (wrong) => createProxy({ upstreams: [upstream], visibility: { allow: [], ...wrong } }),
  ForwardRules: (requestHeader) => createProxy({ upstreams: [{ ...upstream, requestHeader }] }),
  MethodSettings: (wrong) =>
    createProxy({ upstreams: [{ ...upstream, descriptors: kitchenSink, methodSettings: () => wrong }] }),
  DocsPageOptions: (wrong) => createDocsPage({ document: () => "{}", open: true, ...wrong }),
  HealthOptions: (wrong) => createHealthService({ readiness, services: [], ...wrong }),
  DrainTimes: (wrong) =>
    drainGracefully({ drain: async () => undefined }, readiness, { delayMs: 0, timeoutMs: 0, ...wrong }),
  RequestMetricsOptions: (wrong) => createRequestMetrics(new Metrics(), wrong),
  TracingOptions: (wrong) => createTracing(wrong),
  RestTransportOptions: (wrong) => createRestTransport({ baseUrl: "https://api.example", ...wrong }),
  BearerAuthOptions: (wrong) => createBearerAuth(rejectAll, { realm: "r", ...wrong }),
  ProtectedResource: (wrong) =>
    createResourceMetadata({ name: "n", publicUrl: new URL("https://a.example"), issuers: [], scopes: [], ...wrong }),
  TokenRequest: (wrong) => issueToken({ name: "n", prefix: "p", scopes: "-", expiry: "-", file: undefined, ...wrong }),
  TokenSources: (wrong) => openTokenVerifier(wrong, silentLog),
  JwtSource: (wrong) => openTokenVerifier({ jwt: [{ ...source, ...wrong }] }, silentLog),
  KeyTiming: (timing) => openTokenVerifier({ jwt: [{ ...source, timing }] }, silentLog),
  IntrospectionSource: (wrong) =>
    openTokenVerifier({ introspection: { url: "a", clientId: "", clientSecretFile: "b", ...wrong } }, silentLog),
  FileToWatch: (wrong) => watchFile({ ...file, ...wrong }),
  CallLogOptions: (wrong) =>
    createCallLog({ log: silentLog, auditOf: () => ({ trail: undefined, fields: {} }), ...wrong }),
  CallRates: (wrong) => limitRates(() => undefined, wrong),
  RateLimitOptions: (wrong) => createRateLimit({ name: "n", callsPerSecond: 1, ...wrong }),
  SafeErrorsOptions: (wrong) => createSafeErrors({ log: silentLog, ...wrong }),
};

/** The API's other parameters, and why they may have any names. */
const others: Readonly<Record<string, string>> = {
  AdmitRequest: "an argument of hooks",
  Definition: "created by readDefinition",
  GatewayStrategyOptions: "tested with Nest",
  FastifyLike: "an object of Fastify",
  FastifyReplyLike: "an object of Fastify",
  FastifyRequestLike: "an object of Fastify",
  CompletedRequest: "an argument of hooks",
  RequestView: "an argument of hooks",
  BodyCaller: "an argument of hooks",
  ProtocolExtension: "created by createMcp",
  ToolNames: "created by createMcp",
  GenericDefinition: "generated by ts-proto",
  GenericMethod: "generated by ts-proto",
  TsProtoType: "generated by ts-proto",
  EndpointRequest: "an argument of endpoints",
  ReloadReport: "an argument of hooks",
  PresentedToken: "an argument of verifiers",
  Exchange: "created by HTTP servers",
  AbortReceiver: "of an exchange",
  CachedFields: "of an exchange",
  HeaderReader: "of an exchange",
  Peer: "of an exchange",
  CallAudit: "returned by a hook for each call",
  EndpointResponse: "returned by an endpoint for each request",
  Endpoint:
    "may be of any class; a misspelt member is refused (protoport/gateway/test/serve/misspelled-members.test.ts)",
  DescriptorSource: "may be of any class",
  Instruments: "may be of any class",
  Instrument: "of instruments",
  Series: "of instruments",
  MetricDescription: "of instruments; everything in it is required",
  MeasuredGateway: "is a gateway",
  GatewayLoad: "of a gateway",
  Validation: "returned by an entry",
  FieldRules: "returned by an entry",
  FieldKeywords: "of field rules",
  MeasuredReadiness: "may be of any class",
  MeasuredUpstream: "is an upstream",
  MeasuredProxy: "is a proxy",
  MeasuredFile: "may be of any class",
  MeasuredReload: "of a proxy, or a file",
  MeasuredDescriptors: "of a proxy",
  FileReload: "of a verifier",
  ResourceMetadata: "returned by createResourceMetadata",
  OperatorLog: "may be of any class",
  TokenVerifier: "may be of any class",
  KeysFetched: "of a verifier",
  StaticToken: "returned by parsePlainTokens",
  UpstreamTls: "options of node",
  OpenApiInfo: "part of the document, which may have extensions",
  OpenApiServer: "part of the document, which may have extensions",
  OpenApiParameter: "part of the document, which may have extensions",
};

/** The entries for adapters and commands, whose objects programs declare with their types. */
const forAdapters =
  /^command-line|^gateway\/(?:descriptors|errors|exchange|forward|http2-client|messages|openapi-checks|options|rest)$|^frameworks\/nest-mount$/;

describeUnknownOptions({ tree: protoportTree, isCovered: (entry) => !forAdapters.test(entry), gives, others });

const named = (name: string): object => ({ [name]: 1 });

test.each<[name: string, give: () => unknown, message: string]>(
  // oxfmt-ignore
  [
      ["for a service's option",
        () => createGateway({ routes: (router) => router.service(KitchenSink, {}, named("readMaxByte")) }),
        'unknown option "readMaxByte", did you mean "readMaxBytes"?'],
      ["for an RPC's option", () =>
          createGateway({ routes: (router) => router.rpc(KitchenSink.method.query, () => ({}), named("readMaxByte")) }),
        'unknown option "readMaxByte", did you mean "readMaxBytes"?'],
      ["for a JSON option", () => createGateway({ routes, jsonOptions: named("alwaysEmitImplict") }),
        'unknown option "jsonOptions.alwaysEmitImplict", did you mean "jsonOptions.alwaysEmitImplicit"?'],
      ["for an option next to OpenTelemetry's hooks",
        () => createGateway(withOpenTelemetry({ routes, ...named("onRespons") })),
        'unknown option "onRespons", did you mean "onResponse"?'],
    ],
)("the suggestion for an unknown name %s is the nearest known name", async (_, give, message) => {
  await expect(async () => await give()).rejects.toThrow(message);
});

describe("required options", () => {
  // oxfmt-ignore
  describeRequiredOptions([
    [createGateway, ["routes"]], [createFetchGateway, ["routes"]], [createProxy, ["upstreams"]],
    [createGrpcTransport, ["baseUrl"]], [createUpstream, ["addresses"]], [createRestTransport, ["baseUrl"]],
    [createDocsPage, ["document", "open"]], [createHealthService, ["readiness", "services"]],
    [createResourceMetadata, ["name", "publicUrl", "issuers", "scopes"]], [createCallLog, ["log", "auditOf"]],
    [createRateLimit, ["name", "callsPerSecond"]], [createSafeErrors, ["log"]],
  ]);
});

// Options with valid names that were ignored or caused a language error, such as "is not iterable".

const handle = (): { httpStatus: number; body: string } => ({ httpStatus: 200, body: "" });
const forRoot = (options: ConnectModuleOptions): unknown => ConnectModule.forRoot(options);
const noVerifier = {};

class Page {
  readonly path = "/a";
  readonly open = true;
}

/** Calls a function as JavaScript does, without type checks. */
const call = (target: (...given: never) => unknown, ...given: readonly unknown[]): unknown =>
  Reflect.apply(target, undefined, given);

describe("an unusable option", () => {
  const listening = (more: object): unknown => createGateway({ routes, ...more }).listen(address);
  const endpoint = (more: object): unknown => call(createGateway, { routes, endpoints: [{ path: "/a", ...more }] });
  test.each<[name: string, give: () => unknown, message: string]>(
    // oxfmt-ignore
    [
      ["clientAddress with listen()", () => listening({ clientAddress: () => undefined }),
        'listen() would ignore the option "clientAddress": set trustedProxies, or pass gateway.handler to a server'],
      ["contextValues with listen()", () => listening({ contextValues: () => undefined }),
        'listen() would ignore the option "contextValues": set the values in admit, or pass gateway.handler to a server'],
      ["fallback with listen()", () => listening({ fallback: () => undefined }),
        'listen() would ignore the option "fallback": add endpoints, or pass gateway.handler to a server'],
      ["fallback with a proxy's listen()", async () => {
          const proxied = { ...upstream, descriptors: descriptorSetOf(KitchenSink.file) };
          const proxy = await createProxy({ upstreams: [proxied], fallback: () => undefined });
          try {
            await proxy.listen(address);
          } finally {
            await proxy.close();
          }
        }, 'listen() would ignore the option "fallback"'],
      ["fallback in a plugin", () => call(fastifyConnectPlugin, { prefix: "", log: {} }, { routes, fallback: 1 }),
        'the plugin would ignore the option "fallback"'],
      ["routes in a Nest module", () => call(forRoot, { services: [], routes }),
        'ConnectModule.forRoot would ignore the option "routes": list the providers in services'],
      ["a name of the proxies' fields that is unknown",
        () => call(createGateway, { routes, trustedProxies: { addresses: [], fields: "x-forwarded-for" } }),
        'trustedProxies.fields must be one of x-forwarded, forwarded, none, got "x-forwarded-for"'],
      ["a Nest module without services", () => call(forRoot, {}),
        'ConnectModule.forRoot requires the option "services"'],
      ["an endpoint without a handler", () => endpoint({ open: true }), 'endpoint /a requires the option "handle"'],
      ["an endpoint with a handler of another name", () => endpoint({ open: true, answer: handle }),
        'unknown option "answer"; endpoint /a accepts "path", '],
      ["an endpoint with an unknown name", () => endpoint({ open: true, handle, httpMethod: "POST" }),
        'unknown option "httpMethod", did you mean "httpMethods"?'],
      ["an endpoint whose handler is not a function", () => endpoint({ open: true, handle: "ok" }),
        "handle of endpoint /a must be a function, got string"],
      ["an endpoint class without a handler", () => call(createGateway, { routes, endpoints: [new Page()] }),
        'endpoint /a requires the option "handle"'],
      ["a value for routes that is not a function", () => call(createGateway, { routes: {} }),
        "routes must be a function that registers services, got object"],
      ["a value for endpoints that is not an array",
        () => call(createGateway, { routes, endpoints: { path: "/a", open: true, handle } }),
        'option "endpoints" of createGateway must be an array, got an object'],
      ...[Number.NaN, -1, 1.5].flatMap((ms): [string, () => unknown, string][] => {
        const wrong = { closeTimeoutMs: ms };
        return [
          [`cors.maxAgeSeconds: ${ms}`, () => createGateway({ routes, cors: { origins: "*", maxAgeSeconds: ms } }),
            `option "cors.maxAgeSeconds" of createGateway must be an integer between 0 and 9007199254740991, got ${ms}`],
          [`closeTimeoutMs: ${ms}`, () => call(expressConnectMiddleware, { routes, ...wrong }),
            `option "closeTimeoutMs" of the plugin must be an integer between 0 and Infinity, got ${ms}`],
          ...(["delayMs", "timeoutMs"] as const).map((name): [string, () => unknown, string] => [`${name}: ${ms}`,
            () => drainGracefully({ drain: async () => undefined }, readiness, { delayMs: 0, timeoutMs: 0, [name]: ms }),
            `option "${name}" of drainGracefully must be an integer between 0 and 2147483647, got ${ms}`]),
          ...Object.entries({ readMaxBytes: "1 and 4294967295", defaultTimeoutMs: "0 and 2147483647" }).map(
            ([name, range]): [string, () => unknown, string] => [`${name}: ${ms}`,
              () => createRestTransport({ baseUrl: "https://a.example", [name]: ms }),
              `option "${name}" of createRestTransport must be an integer between ${range}, got ${ms}`]),
          ...Object.entries(timings).map(([name, range]): [string, () => unknown, string] => [`timing.${name}: ${ms}`,
            () => openTokenVerifier({ jwt: [{ ...source, timing: { [name]: ms } }] }, silentLog),
            `option "jwt[0].timing.${name}" of openTokenVerifier must be an integer between ${range}, got ${ms}`]),
          [`introspection.timeoutMs: ${ms}`, () => call(openTokenVerifier,
            { introspection: { url: "a", clientId: "", clientSecretFile: "b", timeoutMs: ms } }, silentLog),
            'option "introspection.timeoutMs" of openTokenVerifier must be an integer between 1 and 2147483647'],
        ];
      }),
      ["a value for limits that is not an object", () => call(createGateway, { routes, limits: 1 }),
        'option "limits" of createGateway must be an object, got number'],
      ["a value for jwt that is not an array", () => call(openTokenVerifier, { jwt: {} }, silentLog),
        'option "jwt" of openTokenVerifier must be an array, got an object'],
      ["a value for open that is not an array",
        () => call(createBearerAuth, noVerifier, { realm: "a", open: "shop.v1.Shop" }),
        'option "open" of createBearerAuth must be an array, got string'],
      ...[
        ["the path of an RPC without its first slash", "shop.v1.Shop/List", "/shop.v1.Shop/List"],
        ["a service with slashes around it", "/shop.v1.Shop/", "shop.v1.Shop"],
        ["all RPCs of a service by a wildcard", "/shop.v1.Shop/*", "shop.v1.Shop"],
        ["a service by a wildcard of selectors", "shop.v1.Shop.*", "shop.v1.Shop"],
      ].map(([name = "", given = "", meant = ""]): [string, () => unknown, string] => [
        `${name} in open`,
        () => call(createBearerAuth, noVerifier, { realm: "a", open: ["shop.v1.Other", given] }),
        `option "open" of createBearerAuth must name services (package.Service) and RPCs (/package.Service/Method), got "${given}", did you mean "${meant}"?`,
      ]),
      ["a number in open", () => call(createBearerAuth, noVerifier, { realm: "a", open: [1] }),
        "(/package.Service/Method), got number"],
      ["a value for upstreams that is not an array", () => call(createProxy, { upstreams: upstream }),
        'option "upstreams" of createProxy must be an array, got an object'],
      ["an upstream without descriptors",
        () => call(createProxy, { upstreams: [{ upstream: { addresses: "http://127.0.0.1:1" } }] }),
        'createProxy requires the option "upstreams[0].descriptors"'],
      ["a number as an upstream", () => call(createProxy, { upstreams: [{ ...upstream, upstream: 1 }] }),
        "upstreams[0].upstream of createProxy requires an object of options, got number"],
      ["an upstream without addresses",
        () => call(createProxy, { upstreams: [{ ...upstream, upstream: { tls: {} } }] }),
        'upstreams[0].upstream of createProxy requires the option "addresses"'],
      ["reflectionHeader without reflection",
        () => createProxy({ upstreams: [{ ...upstream, reflectionHeader: { "x-a": "b" } }] }),
        'upstreams[0] of createProxy would ignore the option "reflectionHeader": descriptors are not "reflection"'],
      ["reloadEveryMs without a source that changes",
        () => createProxy({ upstreams: [{ ...upstream, reloadEveryMs: 5 }] }),
        'upstreams[0] of createProxy would ignore the option "reloadEveryMs": descriptors are neither a file nor reflection'],
    ],
  )("%s is refused", async (_, give, message) => {
    const error: unknown = await (async () => await give())().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "ERR_OPTIONS", message: expect.stringContaining(message) });
  });
});
