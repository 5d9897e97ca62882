import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createGrpcTransport, createUpstream } from "../proxy/src/client/entry.ts";
import { createProxy } from "../proxy/src/create-proxy.ts";
import { checkDefinition, compareDefinitions, parseDefinition, writeOpenApi } from "../proxy/src/definitions/entry.ts";
import { createDocsPage } from "../docs-page/src/index.ts";
import { createFetchGateway } from "../gateway/src/fetch/entry.ts";
import { expressConnectMiddleware } from "../frameworks/src/express.ts";
import { type FastifyLike, fastifyConnectPlugin } from "../frameworks/src/fastify.ts";
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
import { createBearerAuth, createResourceMetadata, issueToken, openTokenVerifier, createRateLimit, limitRates,
  type TokenVerifier } from "../auth/src/index.ts";
import { watchFile } from "../auth/src/inputs/index.ts";
import { createCallLog, createSafeErrors, silentLog } from "../telemetry/src/logs/index.ts";
import { KitchenSink, SinkSchema } from "../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { descriptorSetOf } from "../testing/src/gateway/descriptor-set.ts";
import { describeRequiredOptions, describeUnknownOptions } from "../testing/src/options/unknown-options.ts";
import { protoportTree } from "./support/source-files.ts";

// The public API refuses unknown names in every options object. Its types are read from the sources; add new ones here.

const routes = (): void => undefined;
const sink = (router: ConnectRouter): unknown => router.service(KitchenSink, {});
const info = { title: "t", version: "1" };
const readiness = new Readiness({});
const rejectAll: TokenVerifier = { verify: () => ({ kind: "unknown", reason: "none is known" }) };
const upstream = { upstream: "http://127.0.0.1:1", descriptors: new Uint8Array() };
const source = { issuer: "https://issuer.example", audiences: ["a"] };
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
      ["for an option", () => createGateway({ routes, ...named("readMaxByte") }),
        'unknown option "readMaxByte", did you mean "readMaxBytes"?'],
      ["for swapped letters", () => createGateway({ routes, ...named("cros") }),
        'unknown option "cros", did you mean "cors"?'],
      ["for a limit", () => createGateway({ routes, limits: named("conections") }),
        'unknown option "limits.conections", did you mean "limits.connections"?'],
      ["for a service's option",
        () => createGateway({ routes: (router) => router.service(KitchenSink, {}, named("readMaxByte")) }),
        'unknown option "readMaxByte", did you mean "readMaxBytes"?'],
      ["for an RPC's option", () =>
          createGateway({ routes: (router) => router.rpc(KitchenSink.method.query, () => ({}), named("readMaxByte")) }),
        'unknown option "readMaxByte", did you mean "readMaxBytes"?'],
      ["for a JSON option", () => createGateway({ routes, jsonOptions: named("alwaysEmitImplict") }),
        'unknown option "jsonOptions.alwaysEmitImplict", did you mean "jsonOptions.alwaysEmitImplicit"?'],
      ["for an option in the second issuer",
        () => openTokenVerifier({ jwt: [source, { ...source, ...named("audience") }] }, silentLog),
        'unknown option "jwt[1].audience", did you mean "jwt[1].audiences"?'],
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
