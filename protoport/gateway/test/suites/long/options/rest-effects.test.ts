import { createRegistry } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import { compareResponses, type ShortRequest } from "../../../../../testing/src/gateway/compare-responses.ts";
import { kitchenSinkOptions, kitchenSinkRegistry } from "../../../../../testing/src/gateway/kitchen-sink.ts";
import { KitchenSink } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { AccountSchema } from "../../../../../testing/src/gen/signup/v1/signup_pb.ts";
import type { GatewayOptions, RestOptions, RestServiceOptions } from "../../../../src/index.ts";

// Serves requests with two values for each REST option, and compares the responses.

/** Rules for streams, which the greenhouse's definition does not have. */
// oxfmt-ignore
const rules: NonNullable<RestOptions["rules"]> = [
  { selector: "greenhouse.v1.GreenhouseService.WatchReadings",
    pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
  { selector: "greenhouse.v1.GreenhouseService.RecordReadings", pattern: { case: "post", value: "/readings" },
    body: "*" },
];

const options: GatewayOptions = {
  ...kitchenSinkOptions,
  routes: (router) => {
    kitchenSinkOptions.routes(router);
    router.service(GreenhouseService, {
      async *watchReadings({ sensor }) {
        yield { sensor };
      },
      async recordReadings(readings) {
        let count = 0;
        for await (const _ of readings) count += 1;
        return { count };
      },
    });
  },
  interceptors: [
    (next) => async (request) => {
      const response = await next(request);
      response.header.set("x-stock", "7");
      return response;
    },
  ],
};

/** Compares the responses without a REST option and with a value for it. */
function compareRest(request: string | ShortRequest, on: RestOptions, off: RestOptions = {}): Promise<Differs> {
  const short = typeof request === "string" ? { line: request } : request;
  return compareResponses(
    short,
    { ...options, rest: { rules, ...off } },
    { ...options, rest: { rules, ...off, ...on } },
  );
}

/** Compares the responses without a service option and with a value for it. */
function compareService(request: string | ShortRequest, on: RestServiceOptions): Promise<Differs> {
  return compareRest(request, { service: () => on });
}

const unknown = "GET /v1/query?unknown=1";
const failed = "GET /v1/fail/5";
const readings = "GET /sensors/s/readings";
const create = "POST /kitchensink.v1.KitchenSink/Create";
const json = { "content-type": "application/json" };

const leniently = (): RestServiceOptions => ({ lenient: true });

const restEffects: EffectsOf<RestOptions> = {
  emptyResponse: () => compareRest("DELETE /v1/sinks/1", { emptyResponse: 204 }),
  profile: () => compareRest(unknown, { profile: "grpc-gateway" }),
  errors: () => compareRest(failed, { errors: "problem" }),
  errorBody: () => compareRest(failed, { errorBody: { text: "{message}" } }),
  errorRecord: () => compareRest(failed, { errorRecord: () => ({ httpStatus: 418, body: { short: true } }) }),
  contentType: () => compareRest("GET /v1/query", { contentType: "application/vnd.shop+json" }),
  endEvent: () => compareRest({ line: readings, header: { accept: "text/event-stream" } }, { endEvent: false }),
  json: () => compareRest({ line: create, body: '{"unknown":1}' }, { json: { unknownFields: "reject" } }),
  service: () => compareRest(unknown, { service: leniently }),
  onIgnored: () => {
    const service = leniently;
    return compareResponses({ line: unknown }, { ...options, rest: { service } }, (record) => ({
      ...options,
      rest: { service, onIgnored: (_, names) => record(names) },
    }));
  },
  omit: () => compareRest("GET /v1/query", { omit: [`${KitchenSink.typeName}.Query`] }),
  rules: () => compareRest(readings, { rules: [] }),
  ignoreUnregistered: () => {
    const others: NonNullable<RestOptions["rules"]> = [
      { selector: "other.v1.Other.Get", pattern: { case: "get", value: "/other" } },
    ];
    return compareRest("GET /v1/query", { ignoreUnregistered: true }, { rules: others });
  },
  fullyDecodeReservedExpansion: () => compareRest("GET /v1/files/a%2Fb", { fullyDecodeReservedExpansion: true }),
};

const serviceEffects: EffectsOf<RestServiceOptions> = {
  profile: () => compareService(unknown, { profile: "grpc-gateway" }),
  lenient: () => compareService(unknown, { lenient: true }),
  sameValueAsPath: () => compareService({ line: "PUT /v1/sinks/7", body: '{"fInt64":"7"}' }, { sameValueAsPath: true }),
  updateMaskFromBody: () =>
    compareService({ line: "PATCH /v1/shelves/1", body: '{"theme":"Poetry"}' }, { updateMaskFromBody: true }),
  streamInResults: () => compareService(readings, { streamInResults: true }),
  arrayStreams: () => compareService(readings, { arrayStreams: true }),
  eventStreams: () => compareService(readings, { eventStreams: true }),
  ignoredQueryParameters: () => compareService(unknown, { ignoredQueryParameters: ["unk*"] }),
  partialResponses: () => compareService("GET /v1/query?fString=a&$fields=rpc", { partialResponses: true }),
  ignoreBodies: () => compareService({ line: "DELETE /v1/sinks/1", body: "{}" }, { ignoreBodies: true }),
  mapsInQuery: () => compareService("GET /v1/query?labels%5Bcolor%5D=red", { mapsInQuery: true }),
  structsInQuery: () => compareService("GET /v1/query?struct=%7B%22a%22%3A1%7D", { structsInQuery: true }),
  goDurations: () => compareService("GET /v1/query?duration=5m", { goDurations: true }),
  protobufBodies: () =>
    compareService({ line: "GET /v1/query", header: { accept: "application/x-protobuf" } }, { protobufBodies: true }),
  prettyJson: () =>
    compareService({ line: "GET /v1/query", header: { accept: "application/json+pretty" } }, { prettyJson: true }),
  grpcMetadata: () => compareService("GET /v1/query", { grpcMetadata: true }),
  jsonClientStreams: () =>
    compareService({ line: "POST /readings", body: "{}{}", header: json }, { jsonClientStreams: true }),
  int64Numbers: () => compareService("GET /v1/query?fInt64=7", { int64Numbers: true }),
};

/** A message whose type the services do not use. */
const any = '{"any":{"@type":"type.googleapis.com/signup.v1.Account","name":"ada"}}';

const jsonEffects: EffectsOf<NonNullable<RestOptions["json"]>> = {
  unknownFields: () => compareRest({ line: create, body: '{"unknown":1}' }, { json: { unknownFields: "reject" } }),
  canonicalIntegers: () => compareRest({ line: create, body: '{"fInt32":7.0}' }, { json: { canonicalIntegers: true } }),
  registry: () => {
    const jsonOptions = { registry: createRegistry(AccountSchema) };
    const withTypes = { ...options, jsonOptions, rest: { rules } };
    return compareResponses({ line: create, body: any }, withTypes, {
      ...withTypes,
      rest: { rules, json: { registry: kitchenSinkRegistry } },
    });
  },
};

test.each([
  ...Object.entries(restEffects).map(([name, comparison]) => ({ name: `rest.${name}`, comparison })),
  ...Object.entries(serviceEffects).map(([name, comparison]) => ({ name: `${name} of rest.service`, comparison })),
  ...Object.entries(jsonEffects).map(([name, comparison]) => ({ name: `rest.json.${name}`, comparison })),
])("the option $name has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
