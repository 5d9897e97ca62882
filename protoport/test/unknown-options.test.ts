import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createGrpcTransport, createUpstream } from "../proxy/src/client/entry.ts";
import { createProxy } from "../proxy/src/create-proxy.ts";
import { createDocsPage } from "../docs-page/src/index.ts";
import { createFetchGateway } from "../gateway/src/fetch/entry.ts";
import { expressConnectMiddleware } from "../frameworks/src/express.ts";
import { type FastifyLike, fastifyConnectPlugin } from "../frameworks/src/fastify.ts";
import { createHealthService, drainGracefully, Readiness } from "../gateway/src/health/index.ts";
import { createGateway, createOpenApi, shareConnections } from "../gateway/src/index.ts";
import { createMcp } from "../gateway/src/mcp/index.ts";
import { openValidation } from "../gateway/src/validation/index.ts";
import { createRequestMetrics, Metrics } from "../telemetry/src/metrics/index.ts";
import { createTracing, withOpenTelemetry } from "../telemetry/src/opentelemetry/index.ts";
import { addGrpcJsService } from "../grpc-handlers/src/grpc-js.ts";
import { createRestTransport } from "../rest-client/src/index.ts";
import {
  createBearerAuth,
  createResourceMetadata,
  issueToken,
  openTokenVerifier,
  createRateLimit,
  limitRates,
} from "../auth/src/index.ts";
import { watchFile } from "../auth/src/inputs/index.ts";
import { createCallLog, createSafeErrors, silentLog } from "../telemetry/src/logs/index.ts";
import { createPlantStub, createPlantClient } from "../../src/client/index.ts";
import {
  createPlantServer,
  openMemoryStore,
  openPlantStore,
  openSqliteStore,
  createPlantGatewayOptions,
  type TokenVerifier,
} from "../../src/index.ts";
import { KitchenSink, SinkSchema } from "../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { descriptorSetOf } from "../testing/src/gateway/descriptor-set.ts";
import { projectFolder } from "../testing/src/process/child-program.ts";
import { gatewayParts } from "../tools/build/manifest.ts";
import { allSourceFiles, sourceFolders, sourcePath } from "../../test/support/source-files.ts";

// The public API refuses unknown names in every options object. Its types are read from the sources; add new ones here.

const routes = (): void => undefined;
const sink = (router: ConnectRouter): unknown => router.service(KitchenSink, {});
const info = { title: "t", version: "1" };
const readiness = new Readiness({});
const store = openMemoryStore();
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
const client = { address: "127.0.0.1:1", token: "a" };
const fastify: FastifyLike = {
  prefix: "",
  log: { error: () => undefined, warn: () => undefined },
  removeAllContentTypeParsers: () => undefined,
  addContentTypeParser: () => undefined,
  addHook: () => undefined,
  hasRoute: () => false,
  route: () => undefined,
};
const address = { host: "127.0.0.1", port: 0 };
const kitchenSink = descriptorSetOf(KitchenSink.file);

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
  ConnectionAgeOptions: (wrong) => createPlantServer({ store }).listen({ ...address, ...wrong }),
  BindOptions: (wrong) => shareConnections({ ...address, ...wrong }),
  ValidationOptions: (wrong) => openValidation(wrong),
  McpOptions: (wrong) => createMcp({ tools: [], ...wrong }),
  McpStreamLimits: (stream) => createMcp({ tools: [], stream }),
  McpToolOptions: (wrong) => createGateway({ routes: sink, mcp: createMcp({ tools: () => ({ ...wrong }) }) }),
  McpToolHints: (hints) => createGateway({ routes: sink, mcp: createMcp({ tools: () => ({ hints }) }) }),
  OpenApiOptions: (wrong) => createOpenApi([], { info, ...wrong }),
  SecurityOptions: (wrong) => createOpenApi([], { info, ...wrong }),
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
  PlantGatewayParts: (wrong) =>
    createPlantGatewayOptions({ store, verifier: rejectAll, readiness, log: silentLog, ...wrong }),
  PlantServerOptions: (wrong) => createPlantServer({ store, ...wrong }),
  StoreOptions: (wrong) => openPlantStore({ kind: "sqlite", path: "/nowhere/a.db" }, wrong),
  DurableStoreOptions: (wrong) => openPlantStore({ kind: "postgres", url: "postgres://127.0.0.1:1/a" }, wrong),
  IdRange: (wrong) =>
    openPlantStore({ kind: "sqlite", path: "/nowhere/a.db" }, { plantsWhenCreated: { first: 1n, last: 1n, ...wrong } }),
  SqliteStoreOptions: (wrong) => openSqliteStore({ file: "/nowhere/a.db", ...wrong }),
  DatabaseOptions: (wrong) =>
    openSqliteStore({ file: "/nowhere/a.db", plantsWhenCreated: { first: 1n, last: 1n, ...wrong } }),
  PlantStubOptions: (wrong) => createPlantStub({ ...client, ...wrong }),
  PlantClientOptions: (wrong) => createPlantClient({ ...client, ...wrong }),
  CallOptions: async (wrong) => {
    const plants = createPlantClient(client);
    try {
      await plants.delete(1n, wrong);
    } finally {
      plants.close();
    }
  },
};

/** The API's other parameters, and why they may have any names. */
const others: Readonly<Record<string, string>> = {
  AdmitRequest: "an argument of hooks",
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
  DeleteCall: "an argument of stores",
  Exchange: "created by HTTP servers",
  AbortReceiver: "of an exchange",
  CachedFields: "of an exchange",
  HeaderReader: "of an exchange",
  Peer: "of an exchange",
  CallAudit: "returned by a hook for each call",
  EndpointResponse: "returned by an endpoint for each request",
  Endpoint: "may be of any class; a misspelt member is refused (protoport/gateway/test/serve/misspelled-members.test.ts)",
  DescriptorSource: "may be of any class",
  Instruments: "may be of any class",
  Instrument: "of instruments",
  Series: "of instruments",
  MetricDescription: "of instruments; everything in it is required",
  MeasuredGateway: "is a gateway",
  GatewayLoad: "of a gateway",
  HttpEngine: "returned by an entry",
  Validation: "returned by an entry",
  FieldRules: "returned by an entry",
  FieldKeywords: "of field rules",
  HttpServer: "of an engine",
  HttpConnection: "of an engine",
  ServedConnection: "of an engine",
  HttpServerOptions: "passed to an engine by a gateway",
  Failure: "reported by a gateway",
  MeasuredReadiness: "may be of any class",
  MeasuredUpstream: "is an upstream",
  MeasuredProxy: "is a proxy",
  MeasuredFile: "may be of any class",
  MeasuredReload: "of a proxy, or a file",
  MeasuredDescriptors: "of a proxy",
  FileReload: "of a verifier",
  ResourceMetadata: "returned by createResourceMetadata",
  OperatorLog: "may be of any class",
  PlantStore: "may be of any class",
  WaitingDeletions: "of a store",
  StoreConnections: "of a store",
  StoreFile: "of a store",
  TokenVerifier: "may be of any class",
  KeysFetched: "of a verifier",
  StaticToken: "returned by parsePlainTokens",
  UpstreamTls: "options of node",
  OpenApiInfo: "part of the document, which may have extensions",
  OpenApiServer: "part of the document, which may have extensions",
  OpenApiParameter: "part of the document, which may have extensions",
};

const code = allSourceFiles()
  .map((name) => readFileSync(sourcePath(name), "utf8").replaceAll(/\/\*\*.*?\*\//gs, ""))
  .join("\n");
const interfaces = new Map(
  [...code.matchAll(/^(?:export )?interface (\w+)(.*?)\n?\}\n/gms)].map(([, name = "", body = ""]) => [name, body]),
);

function interfacesIn(text: string): string[] {
  return [...text.matchAll(/\b[A-Z]\w+/g)].map(([name]) => name).filter((name) => interfaces.has(name));
}

/** Returns an exported function's declared parameters. */
function parametersOf(name: string): string {
  const declaration = new RegExp(
    `^export (?:async )?function ${name}\\b(?:<[^(]*>)?\\((?:([^\\n]*)\\)|\\n(.*?)\\n\\)): `,
    "ms",
  ).exec(code);
  return declaration?.[1] ?? declaration?.[2] ?? "";
}

/** Returns the parameters that a type's methods have. */
function methodParametersOf(type: string): string[] {
  return [...(interfaces.get(type) ?? "").matchAll(/^ {2}\w+\??\((.*?)\): /gm)].map(
    ([, parameters = ""]) => parameters,
  );
}

/** Returns whether an export is public. Engines and other packages of this project use the others. */
function isPublic(name: string): boolean {
  const isOfPart = gatewayParts.some((part) => `${name}/`.startsWith(`${part}/`));
  return !isOfPart && !/gateway\/(?:create-gateway|exchange|listen|rest)$|http-engine\/client$/.test(name);
}

/** Returns each type that a parameter in a public entry, or one of its members, can have. */
async function givenTypes(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const folder of Object.values(sourceFolders).map((path) => join(projectFolder, path, ".."))) {
    const manifest = readFileSync(join(folder, "package.json"), "utf8");
    const { name, exports }: { name: string; exports: Readonly<Record<string, string>> } = JSON.parse(manifest);
    const paths = Object.entries(exports).filter(
      ([subpath, path]) => isPublic(name + subpath.slice(1)) && path.endsWith(".ts"),
    );
    for (const [, path] of paths) {
      const entry = join(folder, path);
      const values = Object.keys(await import(entry));
      const types = [...readFileSync(entry, "utf8").matchAll(/\btype (\w+)/g)].map(([, type = ""]) => type);
      const parameters = [...values.map(parametersOf), ...types.flatMap(methodParametersOf)];
      for (const type of parameters.flatMap(interfacesIn)) found.add(type);
    }
  }
  // Iterating over a set includes members that are added meanwhile.
  for (const type of found) for (const inside of interfacesIn(interfaces.get(type) ?? "")) found.add(inside);
  return found;
}

test("every parameter type in the public API has a test case or an exception", async () => {
  const types = [...(await givenTypes())].toSorted();
  expect(types.filter((type) => !(type in gives) && !(type in others))).toEqual([]);
  expect([...Object.keys(gives), ...Object.keys(others)].filter((type) => !types.includes(type))).toEqual([]);
});

test.each(Object.entries(gives))("%s refuses an unknown name", async (_, give) => {
  await expect(async () => await give({ misspelledName: 1 })).rejects.toThrow(
    expect.objectContaining({
      code: "ERR_OPTIONS",
      message: expect.stringMatching(/^unknown option "(?:\w+(?:\[\d+\])?\.)*misspelledName"; .* accepts "/),
    }),
  );
});

function named(name: string): object {
  return { [name]: 1 };
}

/** Returns the names that a refusal of an unknown name lists, without the path of their object. */
async function acceptedNames(give: (wrong: object) => unknown): Promise<readonly string[]> {
  const message = await messageOf(() => give({ misspelledName: 1 }));
  const [, list = ""] = /; .* accepts (.*)$/m.exec(message) ?? [];
  return [...list.matchAll(/"(?:[\w[\]]+\.)*(\w+)"/g)].map(([, name = ""]) => name);
}

async function messageOf(give: () => unknown): Promise<string> {
  const error: unknown = await (async () => await give())().catch((reason: unknown) => reason);
  return error instanceof Error ? error.message : "";
}

/** Swaps the last two letters that differ. */
function swapLetters(name: string): string {
  const letters = name.split("");
  const at = letters.findLastIndex((letter, index) => index + 1 < name.length && letter !== name[index + 1]);
  return name.slice(0, at) + name.charAt(at + 1) + name.charAt(at) + name.slice(at + 2);
}

test.each(Object.entries(gives))("%s suggests the right name if two letters are swapped", async (_, give) => {
  const names = (await acceptedNames(give)).filter((name) => name.length > 2);
  const messages = await Promise.all(names.map((name) => messageOf(() => give(named(swapLetters(name))))));
  const suggested = messages.map((message) => /did you mean "(?:[\w[\]]+\.)*(\w+)"/.exec(message)?.[1]);
  expect(names.length).toBeGreaterThan(0);
  expect(suggested).toEqual(names);
});

describe("the suggestion for an unknown name", () => {
  test.each<[name: string, give: () => unknown, message: string]>([
    [
      "for an option",
      () => createGateway({ routes, ...named("readMaxByte") }),
      'unknown option "readMaxByte", did you mean "readMaxBytes"?',
    ],
    [
      "for swapped letters",
      () => createGateway({ routes, ...named("cros") }),
      'unknown option "cros", did you mean "cors"?',
    ],
    [
      "for a limit",
      () => createGateway({ routes, limits: named("conections") }),
      'unknown option "limits.conections", did you mean "limits.connections"?',
    ],
    [
      "for a service's option",
      () => createGateway({ routes: (router) => router.service(KitchenSink, {}, named("readMaxByte")) }),
      'unknown option "readMaxByte", did you mean "readMaxBytes"?',
    ],
    [
      "for an RPC's option",
      () =>
        createGateway({
          routes: (router) => router.rpc(KitchenSink.method.query, () => ({}), named("readMaxByte")),
        }),
      'unknown option "readMaxByte", did you mean "readMaxBytes"?',
    ],
    [
      "for a JSON option",
      () => createGateway({ routes, jsonOptions: named("alwaysEmitImplict") }),
      'unknown option "jsonOptions.alwaysEmitImplict", did you mean "jsonOptions.alwaysEmitImplicit"?',
    ],
    [
      "for an option in the second issuer",
      () => openTokenVerifier({ jwt: [source, { ...source, ...named("audience") }] }, silentLog),
      'unknown option "jwt[1].audience", did you mean "jwt[1].audiences"?',
    ],
    [
      "for a store location's option",
      () => openPlantStore({ kind: "sqlite", path: "/nowhere/a.db", ...named("pathh") }),
      'unknown option "pathh", did you mean "path"?',
    ],
    [
      "for an option next to OpenTelemetry's hooks",
      () => createGateway(withOpenTelemetry({ routes, ...named("onRespons") })),
      'unknown option "onRespons", did you mean "onResponse"?',
    ],
  ])("%s is the nearest known name", async (_, give, message) => {
    await expect(async () => await give()).rejects.toThrow(message);
  });
});

describe("required options", () => {
  test.each<[create: (options: never) => unknown, missing: readonly string[]]>([
    [createGateway, ["routes"]],
    [createFetchGateway, ["routes"]],
    [createProxy, ["upstreams"]],
    [createGrpcTransport, ["baseUrl"]],
    [createUpstream, ["addresses"]],
    [createRestTransport, ["baseUrl"]],
    [createDocsPage, ["document", "open"]],
    [createHealthService, ["readiness", "services"]],
    [createResourceMetadata, ["name", "publicUrl", "issuers", "scopes"]],
    [createCallLog, ["log", "auditOf"]],
    [createRateLimit, ["name", "callsPerSecond"]],
    [createSafeErrors, ["log"]],
    [createPlantGatewayOptions, ["store", "verifier", "readiness", "log"]],
    [createPlantServer, ["store"]],
    [openSqliteStore, ["file"]],
    [createPlantStub, ["address", "token"]],
    [createPlantClient, ["address", "token"]],
  ])("$0.name reports each missing option", async (create, missing) => {
    const lines = missing.map((name) => `${create.name} requires the option "${name}"`);
    await expect(async () => await Reflect.apply(create, undefined, [{}])).rejects.toThrow(
      Object.assign(new TypeError(lines.join("\n")), { code: "ERR_OPTIONS" }),
    );
  });
});
