import { create, createFileRegistry, createRegistry, type DescService, fromBinary } from "@bufbuild/protobuf";
import { anyPack, anyUnpack, FieldOptionsSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestGateway, descriptorSetOf, errorOf, restrictedTo, KitchenSink } from "@protoport/testing/proxy";
import type { Sink } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { file_kitchensink_v1_kitchen_sink } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import {
  file_kitchensink_v1_legacy,
  LegacySchema,
  LegacySink,
} from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { createProxy, type ProxyGateway, type ProxyOptions } from "../../../../src/create-proxy.ts";

// Messages in Any and in error details whose type only another upstream, the registry or a local service describes.

const sinkSet = descriptorSetOf(file_kitchensink_v1_kitchen_sink);
/** A definition for `Legacy` in which the field `number` is hidden. */
const legacySet = restrictedLegacySet();
const legacyTypes = createFileRegistry(fromBinary(FileDescriptorSetSchema, legacySet));
const legacySink: DescService = legacyTypes.getService(LegacySink.typeName) ?? LegacySink;

function restrictedLegacySet(): Uint8Array {
  const proto = structuredClone(file_kitchensink_v1_legacy.proto);
  for (const message of proto.messageType) {
    for (const field of message.field)
      if (field.name === "number") field.options = restrictedTo("INTERNAL", FieldOptionsSchema);
  }
  for (const method of proto.service.flatMap((service) => service.method)) delete method.options;
  return descriptorSetOf({ ...file_kitchensink_v1_legacy, proto });
}

const any = anyPack(LegacySchema, create(LegacySchema, { name: "visible", number: 5 }));
const received: Sink[] = [];

const upstream = createTestGateway({
  jsonOptions: { registry: createRegistry(file_kitchensink_v1_legacy) },
  routes: (router) =>
    router.service(KitchenSink, {
      create: ({ fString }, { requestHeader }) => {
        if (requestHeader.has("fail"))
          throw new ConnectError("failed", Code.Aborted, undefined, [
            { desc: LegacySchema, value: { name: fString, number: 5 } },
          ]);
        return { sink: { any } };
      },
      types: (sink) => {
        received.push(sink);
        return { sink: { any } };
      },
    }),
});
let url: string;
beforeAll(async () => void (url = `http://127.0.0.1:${(await upstream.listen({ host: "127.0.0.1", port: 0 })).port}`));
afterAll(() => upstream.close());
const jsonOptions = { ignoreUnknownFields: false };

const describedBy: Readonly<Record<string, () => ProxyOptions>> = {
  "another upstream": () => ({
    upstreams: [
      { upstream: url, descriptors: sinkSet },
      { upstream: url, descriptors: legacySet },
    ],
    jsonOptions,
  }),
  jsonOptions: () => ({
    upstreams: [{ upstream: url, descriptors: sinkSet }],
    jsonOptions: { ...jsonOptions, registry: legacyTypes },
  }),
  "a service of routes": () => ({
    upstreams: [{ upstream: url, descriptors: sinkSet }],
    routes: (router) => router.service(legacySink, {}),
  }),
};

describe.each(Object.entries(describedBy))("a hidden field of a type from %s", (name, optionsOf) => {
  let proxies: readonly ProxyGateway[];
  let urls: readonly string[];
  beforeAll(async () => {
    proxies = await Promise.all(
      [[], ["INTERNAL"]].map((allow) => createProxy({ ...optionsOf(), visibility: { allow } })),
    );
    const bound = await Promise.all(proxies.map((proxy) => proxy.listen({ host: "127.0.0.1", port: 0 })));
    urls = bound.map(({ port }) => `http://127.0.0.1:${port}`);
  });
  afterAll(() => Promise.all(proxies.map((proxy) => proxy.close())));

  const transports: readonly (readonly [string, (baseUrl: string) => Transport])[] = [
    ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
    ["Connect", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ];

  test.each(transports)("is kept in Any over %s only if its label is allowed", async (_transport, open) => {
    received.length = 0;
    const sinks: Sink[] = [];
    for (const baseUrl of urls) {
      const { sink } = await createClient(KitchenSink, open(baseUrl)).types({ any });
      sinks.push(sink ?? expect.unreachable());
    }
    const numbers = [...received, ...sinks].map((sink) => sink.any && anyUnpack(sink.any, LegacySchema)?.number);
    expect(numbers).toEqual([7, 5, 7, 5]);
  });

  test.each(transports)("is kept in details over %s only if its label is allowed", async (_transport, open) => {
    const numbers: unknown[] = [];
    for (const baseUrl of urls) {
      const client = createClient(KitchenSink, open(baseUrl));
      const error = await errorOf(client.create({ fString: "a" }, { headers: { fail: "yes" } }));
      numbers.push(error.findDetails(LegacySchema).map(({ number }) => number));
    }
    expect(numbers).toEqual([[7], [5]]);
  });

  test("is kept in JSON only if its label is allowed", async () => {
    const responses: unknown[] = [];
    for (const baseUrl of urls) {
      const response = await fetch(`${baseUrl}/kitchensink.v1.KitchenSink/Types`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"any":{"@type":"type.googleapis.com/kitchensink.v1.Legacy","name":"a","number":1}}',
      });
      responses.push([response.status, (await response.text()).includes('"number":5')]);
    }
    // In JSON, Any messages may only have types from upstreams and from jsonOptions.registry.
    const allowed = name === "a service of routes" ? [400, false] : [200, true];
    expect(responses).toEqual([[400, false], allowed]);
  });
});
