import {
  type BinaryReadOptions,
  type BinaryWriteOptions,
  createFileRegistry,
  fromBinary,
  type JsonReadOptions,
  type JsonWriteOptions,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { exchangeFetch } from "../../../../../testing/src/http/fetch.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import {
  compareResponses,
  type OptionValue,
  type ShortRequest,
} from "../../../../../testing/src/gateway/compare-responses.ts";
import { restrictedServices } from "../../../../../testing/src/gateway/restricted.ts";
import { recordGeneratedFunctions } from "../../../../../testing/src/gateway/generated-functions.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { KitchenSink, SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { SignupService } from "../../../../../testing/src/gen/signup/v1/signup_pb.ts";
import { createMcp } from "../../../../src/mcp/index.ts";
import { type CorsOptions, createGateway, type ServingOptions } from "../../../../src/index.ts";
import { openValidation } from "../../../../src/validation/index.ts";

// Serves requests with two values for each createFetchGateway option, and compares the responses.

const read: ShortRequest = { line: "GET /v1/query?fString=a" };
const long = "a".repeat(2_000);
const create = "/kitchensink.v1.KitchenSink/Create";
const failed: ShortRequest = { line: "GET /v1/fail/5" };
const unmatched: ShortRequest = { line: "GET /nowhere" };
const origin = "https://shop.example";
const preflight: ShortRequest = {
  line: "OPTIONS /v1/query",
  header: { origin, "access-control-request-method": "GET" },
};

/** Compares the responses without an option and with a value for it. */
const compareWith = (request: ShortRequest, on: OptionValue): Promise<Differs> => compareResponses(request, {}, on);

const showAborted: Interceptor = (next) => async (request) => {
  const response = await next(request);
  response.header.set("x-aborted", String(request.signal.aborted));
  return response;
};

const signupRoutes: ServingOptions["routes"] = (router) =>
  router.service(SignupService, { register: () => ({ count: 1 }) });

const restrictedRoutes: ServingOptions["routes"] = (router) => {
  for (const service of restrictedServices()) router.service(service, {});
};

function failToAdmit(): never {
  throw new Error("a fault");
}

const generated = recordGeneratedFunctions();

// oxfmt-ignore
const effects: EffectsOf<ServingOptions> = {
  routes: () => compareWith(read, { routes: () => undefined }),
  requestPathPrefix: () => compareWith(read, { requestPathPrefix: "/api" }),
  admit: () =>
    compareWith(read, {
      admit: () => {
        throw new ConnectError("not today", Code.PermissionDenied);
      },
    }),
  rest: () => compareWith(read, { rest: { contentType: "application/vnd.shop+json" } }),
  validation: async () => {
    const routes = signupRoutes;
    const request = { line: "POST /accounts", body: '{"name":"a"}' };
    return await compareResponses(request, { routes }, { routes, validation: await openValidation() });
  },
  visibility: () => {
    const routes = restrictedRoutes;
    const request = { line: "POST /greenhouse.v1.Maintenance/Rinse", body: "{}" };
    return compareResponses(request, { routes }, { routes, visibility: { allow: [] } });
  },
  endpoints: () => compareWith(unmatched,
    { endpoints: [{ path: "/nowhere", open: true, handle: () => ({ httpStatus: 200, body: "here" }) }] }),
  cors: () => compareWith(preflight, { cors: { origins: [origin] } }),
  crossSite: () => compareWith({ line: "POST /v1/sinks", header: { "sec-fetch-site": "cross-site" } },
    { crossSite: "allow" }),
  limits: () => compareWith({ line: `GET /v1/query?fString=${long}` }, { limits: { urlBytes: 1_000 } }),
  mcp: () => compareWith({ line: "GET /mcp" }, { mcp: createMcp({ tools: ["kitchensink.v1.KitchenSink.Query"] }) }),
  codegen: () =>
    compareValues<boolean>(true, false, async (codegen) => {
      generated.length = 0;
      // Generated functions are cached per descriptor, so each gateway gets new ones.
      const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSetOf(KitchenSink.file)));
      const service = files.getService(KitchenSink.typeName);
      if (service === undefined) throw new Error("the descriptors do not contain the service");
      const routes: ServingOptions["routes"] = (router) => router.service(service, {});
      await exchangeFetch(createGateway({ routes, codegen }).fetch, {
        httpMethod: "POST",
        path: create,
        header: [["content-type", "application/json"]],
        body: Buffer.from("{}"),
      });
      return generated.length > 0;
    }),
  onRequest: () => compareWith(read, (record) => ({ onRequest: ({ path }) => record(path) })),
  toError: () => compareWith(failed, { toError: () => new ConnectError("replaced", Code.DataLoss) }),
  onError: () => compareWith(failed, (record) => ({ onError: (_, { code }) => record(code) })),
  nameOptions: () => compareResponses({ line: "GET /v1/query?unknown=1" }, { nameOptions: true },
    { nameOptions: false }),
  onResponse: () => compareWith(read, (record) => ({ onResponse: ({ httpStatus }) => record(httpStatus) })),
  onFault: () => {
    const admit = failToAdmit;
    return compareResponses(read, { admit, onFault: () => undefined }, (record) => ({
      admit,
      onFault: (_, what) => record(what),
    }));
  },
  // Options for Connect's routers.
  acceptCompression: () => compareWith({ line: `GET /v1/query?fString=${long}`, header: { "accept-encoding": "gzip" } },
    { acceptCompression: [] }),
  compressMinBytes: () => compareWith({ ...read, header: { "accept-encoding": "gzip" } }, { compressMinBytes: 1 }),
  readMaxBytes: () => compareWith({ line: "POST /v1/sinks", body: JSON.stringify({ fString: long }) },
    { readMaxBytes: 1_000 }),
  writeMaxBytes: () => compareWith({ line: `POST ${create}`, body: JSON.stringify({ fString: long }) },
    { writeMaxBytes: 1_000, onFault: () => undefined }),
  jsonOptions: () => compareWith(read, { jsonOptions: { alwaysEmitImplicit: true } }),
  binaryOptions: () => compareWith(unknownField, { binaryOptions: { readUnknownFields: false } }),
  maxTimeoutMs: () => compareWith({ line: `POST ${create}`, body: "{}", header: { "connect-timeout-ms": "5000" } },
    { maxTimeoutMs: 1_000 }),
  shutdownSignal: () => {
    const interceptors = [showAborted];
    const stopped = new ConnectError("stopped", Code.Unavailable);
    return compareResponses(read, { interceptors }, { interceptors, shutdownSignal: AbortSignal.abort(stopped) });
  },
  requireConnectProtocolHeader: () => compareWith({ line: `POST ${create}`, body: "{}" },
    { requireConnectProtocolHeader: true }),
  interceptors: () => compareWith(read, { interceptors: [showAborted] }),
  requestGate: () =>
    compareWith(read, {
      requestGate: () => {
        throw new ConnectError("not today", Code.PermissionDenied);
      },
    }),
  connect: () => compareWith({ line: `POST ${create}`, body: "{}" }, { connect: false }),
  grpc: () => compareWith(rpc("application/grpc"), { grpc: false }),
  grpcWeb: () => compareWith(rpc("application/grpc-web"), { grpcWeb: false }),
};

/** Returns a Create call with an empty message. */
function rpc(contentType: string): ShortRequest {
  return { line: `POST ${create}`, body: Buffer.alloc(5), header: { "content-type": contentType } };
}

/** A message with a field 9999, which the definition does not have. */
const unknownField: ShortRequest = {
  line: `POST ${create}`,
  body: Buffer.of(0xf8, 0xf0, 0x04, 0x01),
  header: { "content-type": "application/proto" },
};

/** A message that contains messages. */
const nested = {
  line: `POST ${create}`,
  // Field `child`, 51, twice, one in the other.
  body: Buffer.of(0x9a, 0x03, 0x03, 0x9a, 0x03, 0x00),
  header: { "content-type": "application/proto" },
} satisfies ShortRequest;

const binaryEffects: EffectsOf<Omit<BinaryReadOptions & BinaryWriteOptions, "readerFactory" | "writerFactory">> = {
  readUnknownFields: () => compareWith(unknownField, { binaryOptions: { readUnknownFields: false } }),
  writeUnknownFields: () => compareWith(unknownField, { binaryOptions: { writeUnknownFields: false } }),
  recursionLimit: () => compareWith(nested, { binaryOptions: { recursionLimit: 1 } }),
};

const withUnknown: ShortRequest = { line: `POST ${create}`, body: '{"unknown":1}' };
const withEnum: ShortRequest = { line: "GET /v1/query?fEnum=COLOR_RED" };

// oxfmt-ignore
const jsonEffects: EffectsOf<JsonReadOptions & JsonWriteOptions> = {
  ignoreUnknownFields: () => compareResponses(withUnknown, { jsonOptions: { ignoreUnknownFields: true } },
    { jsonOptions: { ignoreUnknownFields: false } }),
  registry: () => compareWith({ line: `POST ${create}`,
      body: '{"any":{"@type":"type.googleapis.com/kitchensink.v1.Nested","text":"a"}}' },
    { jsonOptions: {}, routes: (router) => router.service(SignupService, {}) }),
  // The value is refused.
  recursionLimit: () => compareWith(read, { jsonOptions: { recursionLimit: 1 } }),
  alwaysEmitImplicit: () => compareWith(read, { jsonOptions: { alwaysEmitImplicit: true } }),
  enumAsInteger: () => compareWith(withEnum, { jsonOptions: { enumAsInteger: true } }),
  useProtoFieldName: () => compareWith(read, { jsonOptions: { useProtoFieldName: true } }),
};

const corsEffects: EffectsOf<CorsOptions> = {
  origins: () => compareCors(preflight, {}, { origins: ["https://other.example"] }),
  allowedHeaders: () => compareCors(preflight, {}, { allowedHeaders: ["x-cart"] }),
  exposedHeaders: () => compareCors({ ...read, header: { origin } }, {}, { exposedHeaders: ["x-version"] }),
  maxAgeSeconds: () => compareCors(preflight, {}, { maxAgeSeconds: 60 }),
};

function compareCors(request: ShortRequest, off: Partial<CorsOptions>, on: Partial<CorsOptions>): Promise<Differs> {
  const usual = { origins: [origin] };
  return compareResponses(request, { cors: { ...usual, ...off } }, { cors: { ...usual, ...on } });
}

const rows = Object.entries({
  ...effects,
  ...named("binaryOptions", binaryEffects),
  ...named("jsonOptions", jsonEffects),
  ...named("cors", corsEffects),
});

test.for(rows)("the option %s has an effect", async ([name, comparison], { skip }) => {
  skip(name === "binaryOptions.recursionLimit" && !hasRecursionLimit(), "this protobuf-es does not have the option");
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});

/** Returns whether the installed protobuf-es limits how deeply messages nest. */
function hasRecursionLimit(): boolean {
  try {
    fromBinary(SinkSchema, nested.body, { recursionLimit: 1 });
    return false;
  } catch {
    return true;
  }
}

/** Returns an option's comparisons, one per member. */
function named(option: string, ofMembers: Readonly<Record<string, () => Promise<Differs>>>): typeof ofMembers {
  return Object.fromEntries(Object.entries(ofMembers).map(([name, comparison]) => [`${option}.${name}`, comparison]));
}
