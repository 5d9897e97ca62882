// oxfmt-ignore
import { type BinaryReadOptions, type BinaryWriteOptions, createRegistry, fromBinary, type JsonReadOptions,
  type JsonWriteOptions } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { compareValues, Differs } from "../../../../../testing/src/comparison.ts";
import { exchangeFetch, kitchenSinkOptions, kitchenSinkRegistry } from "@protoport/testing";
import { restrictedServices } from "../../../../../testing/src/gateway/restricted.ts";
import { SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { AccountSchema, SignupService } from "../../../../../testing/src/gen/signup/v1/signup_pb.ts";
// oxfmt-ignore
import { type CorsOptions, createGateway, type GatewayOptions, type RestOptions, type RestServiceOptions,
  type ServingOptions } from "../../../../src/index.ts";
import { createMcp } from "../../../../src/mcp/index.ts";
import { openValidation } from "../../../../src/validation/index.ts";

// Serves a request with two values for each createFetchGateway option, and compares the responses. codegen.test.ts
// compares the values of `codegen`.

type Fields = Readonly<Record<string, string>>;
type Sent = string | readonly [line: string, body?: string | Uint8Array | undefined, header?: Fields];
/** A value of the option, or a function whose callbacks record. */
type Value<Options> = Partial<Options> | ((record: (what: unknown) => void) => Partial<Options>);
/** A request, and the options that differ. */
type Effect<Options> = readonly [sent: Sent, on: Value<Options>, off?: Value<Options>];
/** An option without an effect does not compile. */
type Effects<Options> = Readonly<Record<keyof Options, Effect<Options>>>;
const pattern = (value: string, httpMethod: "get" | "post") => ({ case: httpMethod, value }) as const;
const rules: NonNullable<RestOptions["rules"]> = [
  { selector: `${GreenhouseService.typeName}.WatchReadings`, pattern: pattern("/sensors/{sensor}/readings", "get") },
  { selector: `${GreenhouseService.typeName}.RecordReadings`, pattern: pattern("/readings", "post"), body: "*" },
];

const other: NonNullable<RestOptions["rules"]> = [
  { selector: "other.v1.Other.Get", pattern: pattern("/other", "get") },
];

const markAborted: Interceptor = (next) => async (request) => {
  const response = await next(request);
  response.header.set("x-aborted", String(request.signal.aborted));
  return response;
};

const usual = {
  ...kitchenSinkOptions,
  routes: (router) => {
    kitchenSinkOptions.routes(router);
    router.service(SignupService, { register: () => ({ count: 1 }) });
    router.service(GreenhouseService, {
      async *watchReadings({ sensor }) {
        yield { sensor };
      },
      async recordReadings(messages) {
        let count = 0;
        for await (const _ of messages) count += 1;
        return { count };
      },
    });
  },
  interceptors: [markAborted],
} satisfies ServingOptions;

const restricted: ServingOptions["routes"] = (router) => {
  for (const service of restrictedServices()) router.service(service, {});
};

function refuse(): never {
  throw new ConnectError("not today", Code.PermissionDenied);
}

function fail(): never {
  throw new Error("a fault");
}

const long = "a".repeat(2_000);
const origin = "https://shop.example";
const create = "POST /kitchensink.v1.KitchenSink/Create";
const createSink = "POST /v1/sinks";
const failed = "GET /v1/fail/5";
const read = "GET /v1/query?fString=a";
const readings = "GET /sensors/s/readings";
const unknown = "GET /v1/query?unknown=1";
const unknownMember = [create, '{"unknown":1}'] as const;
/** A message with a field 9999, which the definition does not have. */
const unknownField = [create, Buffer.of(0xf8, 0xf0, 0x04, 0x01), { "content-type": "application/proto" }] as const;
/** Field `child`, 51, twice, one in the other. */
const nested = Buffer.of(0x9a, 0x03, 0x03, 0x9a, 0x03, 0x00);
const any = (type: string): string => `{"any":{"@type":"type.googleapis.com/${type}"}}`;
const accept = (type: string) => ["GET /v1/query", undefined, { accept: type }] as const;
const rpc = (type: string) => [create, Buffer.alloc(5), { "content-type": type }] as const;
const preflight = ["OPTIONS /v1/query", undefined, { origin, "access-control-request-method": "GET" }] as const;
const validation = await openValidation();
const stopped = AbortSignal.abort(new ConnectError("stopped", Code.Unavailable));
const page = { path: "/nowhere", open: true, handle: () => ({ httpStatus: 200, body: "here" }) } as const;

// oxfmt-ignore
const servingEffects: Effects<Omit<ServingOptions, "codegen">> = {
  routes: [read, { routes: () => undefined }],
  requestPathPrefix: [read, { requestPathPrefix: "/api" }],
  admit: [read, { admit: refuse }],
  rest: [read, { rest: { contentType: "application/vnd.shop+json" } }],
  validation: [["POST /accounts", '{"name":"a"}'], { validation }],
  visibility: [["POST /greenhouse.v1.Maintenance/Rinse", "{}"], { routes: restricted, visibility: { allow: [] } },
    { routes: restricted }],
  endpoints: ["GET /nowhere", { endpoints: [page] }],
  cors: [preflight, { cors: { origins: [origin] } }],
  crossSite: [[createSink, undefined, { "sec-fetch-site": "cross-site" }], { crossSite: "allow" }],
  limits: [`GET /v1/query?fString=${long}`, { limits: { urlBytes: 1_000 } }],
  mcp: ["GET /mcp", { mcp: createMcp({ tools: ["kitchensink.v1.KitchenSink.Query"] }) }],
  onRequest: [read, (record) => ({ onRequest: ({ path }) => record(path) })],
  toError: [failed, { toError: () => new ConnectError("replaced", Code.DataLoss) }],
  onError: [failed, (record) => ({ onError: (_, { code }) => record(code) })],
  nameOptions: [unknown, { nameOptions: false }, { nameOptions: true }],
  onResponse: [read, (record) => ({ onResponse: ({ httpStatus }) => record(httpStatus) })],
  onFault: [read, (record) => ({ admit: fail, onFault: (_, what) => record(what) }),
    { admit: fail, onFault: () => undefined }],
  acceptCompression: [[`GET /v1/query?fString=${long}`, undefined, { "accept-encoding": "gzip" }],
    { acceptCompression: [] }],
  compressMinBytes: [[read, undefined, { "accept-encoding": "gzip" }], { compressMinBytes: 1 }],
  readMaxBytes: [[createSink, JSON.stringify({ fString: long })], { readMaxBytes: 1_000 }],
  writeMaxBytes: [[create, JSON.stringify({ fString: long })], { writeMaxBytes: 1_000, onFault: () => undefined }],
  jsonOptions: [read, { jsonOptions: { alwaysEmitImplicit: true } }],
  binaryOptions: [unknownField, { binaryOptions: { readUnknownFields: false } }],
  maxTimeoutMs: [[create, "{}", { "connect-timeout-ms": "5000" }], { maxTimeoutMs: 1_000 }],
  shutdownSignal: [read, { shutdownSignal: stopped }],
  requireConnectProtocolHeader: [[create, "{}"], { requireConnectProtocolHeader: true }],
  interceptors: [read, { interceptors: [] }],
  requestGate: [read, { requestGate: refuse }],
  connect: [[create, "{}"], { connect: false }],
  grpc: [rpc("application/grpc"), { grpc: false }],
  grpcWeb: [rpc("application/grpc-web"), { grpcWeb: false }],
};

const corsEffects: Effects<CorsOptions> = {
  origins: [preflight, { origins: ["https://other.example"] }],
  allowedHeaders: [preflight, { allowedHeaders: ["x-cart"] }],
  exposedHeaders: [[read, undefined, { origin }], { exposedHeaders: ["x-version"] }],
  maxAgeSeconds: [preflight, { maxAgeSeconds: 60 }],
};

// oxfmt-ignore
const binaryEffects: Effects<Omit<BinaryReadOptions & BinaryWriteOptions, "readerFactory" | "writerFactory">> = {
  readUnknownFields: [unknownField, { readUnknownFields: false }],
  writeUnknownFields: [unknownField, { writeUnknownFields: false }],
  recursionLimit: [[create, nested, { "content-type": "application/proto" }], { recursionLimit: 1 }],
};

const jsonEffects: Effects<JsonReadOptions & JsonWriteOptions> = {
  ignoreUnknownFields: [unknownMember, { ignoreUnknownFields: false }, { ignoreUnknownFields: true }],
  registry: [[create, any("kitchensink.v1.Nested")], { registry: createRegistry(AccountSchema) }],
  // The value is refused.
  recursionLimit: [read, { recursionLimit: 1 }],
  alwaysEmitImplicit: [read, { alwaysEmitImplicit: true }],
  enumAsInteger: ["GET /v1/query?fEnum=COLOR_RED", { enumAsInteger: true }],
  useProtoFieldName: [read, { useProtoFieldName: true }],
};

// oxfmt-ignore
const restEffects: Effects<RestOptions> = {
  rules: [readings, { rules: [] }],
  emptyResponse: ["DELETE /v1/sinks/1", { emptyResponse: 204 }],
  profile: [unknown, { profile: "grpc-gateway" }],
  errors: [failed, { errors: "problem" }],
  errorBody: [failed, { errorBody: { text: "{message}" } }],
  errorRecord: [failed, { errorRecord: () => ({ httpStatus: 418, body: { short: true } }) }],
  contentType: ["GET /v1/query", { contentType: "application/vnd.shop+json" }],
  endEvent: [[readings, undefined, { accept: "text/event-stream" }], { endEvent: false }],
  json: [unknownMember, { json: { unknownFields: "reject" } }],
  service: [unknown, { service: () => ({ lenient: true }) }],
  onIgnored: [unknown,
    (record) => ({ service: () => ({ lenient: true }), onIgnored: (_, names) => record(names) }),
    { service: () => ({ lenient: true }) }],
  omit: ["GET /v1/query", { omit: ["kitchensink.v1.KitchenSink.Query"] }],
  ignoreUnregistered: ["GET /v1/query", { rules: other, ignoreUnregistered: true }, { rules: other }],
  fullyDecodeReservedExpansion: ["GET /v1/files/a%2Fb", { fullyDecodeReservedExpansion: true }],
};

// oxfmt-ignore
const serviceEffects: Effects<RestServiceOptions> = {
  profile: [unknown, { profile: "grpc-gateway" }],
  lenient: [unknown, { lenient: true }],
  sameValueAsPath: [["PUT /v1/sinks/7", '{"fInt64":"7"}'], { sameValueAsPath: true }],
  updateMaskFromBody: [["PATCH /v1/shelves/1", '{"theme":"Poetry"}'], { updateMaskFromBody: true }],
  streamInResults: [readings, { streamInResults: true }],
  arrayStreams: [readings, { arrayStreams: true }],
  eventStreams: [readings, { eventStreams: true }],
  ignoredQueryParameters: [unknown, { ignoredQueryParameters: ["unk*"] }],
  partialResponses: ["GET /v1/query?fString=a&$fields=rpc", { partialResponses: true }],
  ignoreBodies: [["DELETE /v1/sinks/1", "{}"], { ignoreBodies: true }],
  mapsInQuery: ["GET /v1/query?labels%5Bcolor%5D=red", { mapsInQuery: true }],
  structsInQuery: ["GET /v1/query?struct=%7B%22a%22%3A1%7D", { structsInQuery: true }],
  goDurations: ["GET /v1/query?duration=5m", { goDurations: true }],
  protobufBodies: [accept("application/x-protobuf"), { protobufBodies: true }],
  prettyJson: [accept("application/json+pretty"), { prettyJson: true }],
  grpcMetadata: ["GET /v1/query", { grpcMetadata: true }],
  jsonClientStreams: [["POST /readings", "{}{}"], { jsonClientStreams: true }],
  int64Numbers: ["GET /v1/query?fInt64=7", { int64Numbers: true }],
};

const restJsonEffects: Effects<NonNullable<RestOptions["json"]>> = {
  unknownFields: [unknownMember, { unknownFields: "reject" }],
  canonicalIntegers: [[create, '{"fInt32":7.0}'], { canonicalIntegers: true }],
  registry: [[create, any("kitchensink.v1.Nested")], { registry: createRegistry(AccountSchema) }],
};

type OptionsOf = (record: (what: unknown) => void) => GatewayOptions;

/** Compares the responses, or the errors, with two options, and the records of their callbacks. */
function compareResponses(sent: Sent, off: OptionsOf, on: OptionsOf): Promise<Differs> {
  const [line, body, more = {}] = typeof sent === "string" ? [sent] : sent;
  const [httpMethod = "", path = ""] = line.split(" ");
  const header = Object.entries({ ...(body !== undefined && { "content-type": "application/json" }), ...more });
  const request = { httpMethod, path, header, ...(body !== undefined && { body: Buffer.from(body) }) };
  return compareValues(off, on, async (optionsOf) => {
    const recorded: unknown[] = [];
    try {
      const { fetch } = createGateway(optionsOf((what) => void recorded.push(what)));
      const response = await exchangeFetch(fetch, request);
      return [response.httpStatus, response.header, String(response.body), recorded];
    } catch (error) {
      return error;
    }
  });
}

/** Compares the effects of an option's members, of which `wrap` returns the gateway's options. */
function named<Options>(
  owner: string,
  effects: Readonly<Record<string, Effect<Options>>>,
  wrap: (options: Partial<Options>) => Partial<ServingOptions>,
) {
  return Object.entries(effects).map(([member, [sent, on, off = {}]]) => {
    const optionsOf = (value: Value<Options>) => (record: (what: unknown) => void) => ({
      ...usual,
      ...wrap(typeof value === "function" ? value(record) : value),
    });
    return [`${owner}${member}`, () => compareResponses(sent, optionsOf(off), optionsOf(on))] as const;
  });
}

/** Returns whether the installed protobuf-es limits how deeply messages nest. */
function hasRecursionLimit(): boolean {
  try {
    fromBinary(SinkSchema, nested, { recursionLimit: 1 });
    return false;
  } catch {
    return true;
  }
}

test.for([
  ...named<ServingOptions>("", servingEffects, (options) => options),
  ...named<CorsOptions>("cors.", corsEffects, (cors) => ({ cors: { origins: [origin], ...cors } })),
  ...named("binaryOptions.", binaryEffects, (binaryOptions) => ({ binaryOptions })),
  ...named("jsonOptions.", jsonEffects, (json) => ({ jsonOptions: { registry: kitchenSinkRegistry, ...json } })),
  ...named<RestOptions>("rest.", restEffects, (rest) => ({ rest: { rules, ...rest } })),
  ...named<RestServiceOptions>("rest.service ", serviceEffects, (own) => ({ rest: { rules, service: () => own } })),
  ...named("rest.json.", restJsonEffects, (json) => ({ rest: { rules, json } })),
])("the option %s has an effect", async ([name, comparison], { skip }) => {
  skip(name === "binaryOptions.recursionLimit" && !hasRecursionLimit(), "this protobuf-es does not have the option");
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
