// oxfmt-ignore
import { Code, createClient, type Transport, type ConnectRouter, ConnectError, type ServiceImpl
} from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { file_greenhouse_v1_greenhouse } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type Gateway, type GatewayOptions, createGateway } from "../../../../../gateway/src/index.ts";
import { errorOf, startGreenhouse, shared } from "@protoport/testing";
// oxfmt-ignore
import { createTestGateway, descriptorSetOf, file_files_v1_files, file_kitchensink_v1_kitchen_sink, GreenhouseService,
  KitchenSink, restrictedGreenhouse, restrictedServices, restrictedTo, type Sink, startProxy, type TestProxy
} from "@protoport/testing/proxy";
import { createFileRegistry, type DescService, fromBinary, create, createRegistry } from "@bufbuild/protobuf";
import { FieldOptionsSchema, FileDescriptorSetSchema, anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { file_kitchensink_v1_shelves, Shelves } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { createProxy, type ProxyOptions } from "../../../../src/create-proxy.ts";
// oxfmt-ignore
import { file_kitchensink_v1_legacy, LegacySchema, LegacySink
} from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";

const notes: string[] = [];
const upstream = shared(() =>
  startGreenhouse({
    getReading: ({ sensor }) => ({ sensor, degreesCelsius: 20 }),
    waterBed: ({ bed, liters, note }) => {
      notes.push(note);
      return { bed, liters, note: "secret" };
    },
    async *watchReadings({ count }) {
      for (let at = 1; at <= count; at += 1) yield { degreesCelsius: at };
    },
  }),
);
const start = (allow: readonly string[]): Promise<TestProxy> =>
  startProxy(`http://127.0.0.1:${upstream.address.port}`, [restrictedGreenhouse()], { visibility: { allow } });
const internal = shared(() => start(["PREVIEW"]));
const open = shared(() => start(["INTERNAL"]));
const json = { useBinaryFormat: false };
const transports: readonly { readonly name: string; readonly open: (baseUrl: string) => Transport }[] = [
  { name: "Connect with JSON", open: (baseUrl) => createConnectTransport({ ...json, baseUrl, httpVersion: "1.1" }) },
  { name: "gRPC", open: (baseUrl) => createGrpcTransport({ baseUrl }) },
  { name: "gRPC-Web", open: (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }) },
];

/** Listens on a free port until it is disposed of. */
const listen = async (gateway: Pick<Gateway, "listen" | "close">) => ({
  baseUrl: `http://127.0.0.1:${(await gateway.listen({ host: "127.0.0.1", port: 0 })).port}`,
  [Symbol.asyncDispose]: () => gateway.close(),
});

type JsonResponse = { readonly status: number; readonly body: string };

async function post(proxy: TestProxy, path: string, body: string): Promise<JsonResponse> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(proxy.baseUrl + path, { method: "POST", headers, body });
  return { status: response.status, body: await response.text() };
}

describe.each(transports)("over $name", ({ open: openTransport }) => {
  test("a hidden RPC is unimplemented, and the others are served", async () => {
    const client = createClient(GreenhouseService, openTransport(internal.baseUrl));
    expect(await errorOf(client.getReading({ sensor: "a" }))).toMatchObject({ code: Code.Unimplemented });
    const temperatures: number[] = [];
    for await (const { degreesCelsius } of client.watchReadings({ count: 2 })) temperatures.push(degreesCelsius);
    expect(temperatures).toEqual([1, 2]);
  });

  test("a hidden field does not reach the upstream or the caller", async () => {
    notes.length = 0;
    const client = createClient(GreenhouseService, openTransport(internal.baseUrl));
    const { bed, liters, note, $unknown } = await client.waterBed({ bed: 1n, liters: 2, note: "mine" });
    expect([bed, liters, note, $unknown, notes]).toEqual([1n, 2, "", undefined, [""]]);
  });

  test("an allowed label makes the RPC and the field visible", async () => {
    notes.length = 0;
    const client = createClient(GreenhouseService, openTransport(open.baseUrl));
    expect(await client.getReading({ sensor: "a" })).toMatchObject({ degreesCelsius: 20 });
    expect([await client.waterBed({ bed: 1n, note: "mine" }), notes]).toMatchObject([{ note: "secret" }, ["mine"]]);
  });
});

test("rest.omit works on an RPC that another upstream hides", async () => {
  const url = `http://127.0.0.1:${upstream.address.port}`;
  const descriptors = descriptorSetOf(restrictedGreenhouse(), file_files_v1_files);
  const other = { upstream: url, descriptors, services: ["files.*"] };
  const shown = { upstream: url, descriptors: descriptorSetOf(file_greenhouse_v1_greenhouse) };
  const statusWith = async (omit: readonly string[]): Promise<number> => {
    const options = { upstreams: [other, shown], visibility: { allow: ["PREVIEW"] }, rest: { omit } };
    await using proxy = await startProxy(url, [], options);
    return (await fetch(`${proxy.baseUrl}/sensors/a/reading`)).status;
  };
  expect([await statusWith([]), await statusWith([`${GreenhouseService.typeName}.GetReading`])]).toEqual([200, 404]);
});

describe("over REST", () => {
  test("a hidden RPC gets the response for an unknown path", async () => {
    const [hidden, unknown] = await Promise.all(
      ["/sensors/a/reading", "/sensors/a/nothing"].map(async (path) => {
        const response = await fetch(internal.baseUrl + path);
        return { status: response.status, body: await response.text() };
      }),
    );
    expect(hidden).toEqual(unknown);
    expect(hidden).toMatchObject({ status: 404 });
    expect((await fetch(`${open.baseUrl}/sensors/a/reading`)).status).toBe(200);
  });

  test("a hidden field is absent from the response", async () => {
    const hidden = await post(internal, "/beds/1:water", '{"liters":2}');
    expect(hidden).toEqual({ status: 200, body: '{"bed":"1","liters":2}' });
    const shown = await post(open, "/beds/1:water", '{"liters":2}');
    expect(shown).toMatchObject({ body: '{"bed":"1","liters":2,"note":"secret"}' });
  });
});

const maintenanceRoutes: GatewayOptions["routes"] = (router) => {
  for (const service of restrictedServices().filter(({ name }) => name === "Maintenance")) router.service(service, {});
};

test("an RPC that the proxy serves itself is hidden too", async () => {
  const statusFor = async (...allow: readonly string[]): Promise<readonly [number, string[]]> => {
    const url = `http://127.0.0.1:${upstream.address.port}`;
    const options = { routes: maintenanceRoutes, visibility: { allow } };
    await using started = await startProxy(url, [restrictedGreenhouse()], options);
    const { status } = await post(started, "/greenhouse.v1.Maintenance/Rinse", "{}");
    expect((await post(started, "/beds/1:water", "{}")).status).toBe(200);
    return [status, [...started.proxy.visibilityLabels]];
  };
  expect(await statusFor()).toEqual([404, ["INTERNAL"]]);
  expect(await statusFor("INTERNAL")).toEqual([501, ["INTERNAL"]]);
});

test("rules and omissions for hidden RPCs are ignored", async () => {
  const reading = `${GreenhouseService.typeName}.GetReading`;
  const rule = { selector: reading, pattern: { case: "get", value: "/moved/{sensor}" } } as const;
  const statusFor = async (allow: readonly string[]): Promise<readonly [number, string[]]> => {
    const options = { rest: { rules: [rule] }, visibility: { allow } };
    const url = `http://127.0.0.1:${upstream.address.port}`;
    await using started = await startProxy(url, [restrictedGreenhouse()], options);
    return [(await fetch(`${started.baseUrl}/moved/4`)).status, [...started.proxy.hiddenRpcs]];
  };
  expect(await statusFor(["INTERNAL"])).toEqual([200, []]);
  expect(await statusFor([])).toEqual([404, [reading]]);
  const options = { rest: { omit: [reading] }, visibility: { allow: [] } };
  await using omitting = await startProxy("http://127.0.0.1:1", [restrictedGreenhouse()], options);
  expect(omitting.proxy.rest.omit).toEqual([]);
});

// Update masks that name hidden fields, in a gateway and in a proxy. The fields `theme` and `room` are hidden.

function restrictedShelves(): Uint8Array {
  const proto = structuredClone(file_kitchensink_v1_shelves.proto);
  const messages = proto.messageType.flatMap((message) => [message, ...message.nestedType]);
  for (const field of messages.flatMap((message) => message.field))
    if (["theme", "room"].includes(field.name))
      field.options = restrictedTo("INTERNAL", FieldOptionsSchema, field.options);
  return descriptorSetOf({ ...file_kitchensink_v1_shelves, proto });
}

const descriptors = restrictedShelves();
const linked = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors)).getService(Shelves.typeName);
const restricted = linked !== undefined && isShelves(linked) ? linked : Shelves;
const visibility = { allow: [] };

function isShelves(service: DescService): service is typeof Shelves {
  return service.typeName === Shelves.typeName;
}

const receivedPaths: (readonly string[])[] = [];
const response = {
  shelf: { name: "shelves/1" },
  updateMask: { paths: ["theme", "name", "place.room", "place.floor"] },
};

const routesOf =
  (service: typeof Shelves) =>
  (router: ConnectRouter): ConnectRouter =>
    router.service(service, {
      updateShelf: ({ updateMask }) => {
        receivedPaths.push(updateMask?.paths ?? []);
        return response;
      },
    });

const shelvesUpstream = shared(() => listen(createTestGateway({ routes: routesOf(Shelves) })));

const openers = {
  gateway: () => Promise.resolve(createGateway({ routes: routesOf(restricted), visibility })),
  proxy: () => createProxy({ upstreams: [{ upstream: shelvesUpstream.baseUrl, descriptors }], visibility }),
};

describe.each(Object.entries(openers))("an update mask in a %s", (_, openGateway) => {
  const server = shared(async () => listen(await openGateway()));

  test.each(transports)(
    "over $name, a path to a hidden field or to its message is refused like an unknown path",
    async ({ open: openTransport }) => {
      receivedPaths.length = 0;
      const client = createClient(Shelves, openTransport(server.baseUrl));
      const update = async (path: string): Promise<string> => {
        const error = await errorOf(client.updateShelf({ shelf: {}, updateMask: { paths: ["name", path] } }));
        expect(error.code).toBe(Code.InvalidArgument);
        return error.rawMessage.replaceAll(path, "PATH");
      };
      const unknown = await update("nothing");
      const hidden = ["theme", "place.room", "place.behind.room", "former_places.*.room", "place.nothing"];
      for (const path of [...hidden, "*", "place", "place.behind", "former_places", "former_places.*"])
        expect(await update(path)).toBe(unknown);
      expect(receivedPaths).toEqual([]);
    },
  );

  test.each(transports)("over $name, a response lacks the paths of hidden fields", async ({ open: openTransport }) => {
    receivedPaths.length = 0;
    const paths = ["name", "labels.theme", "former_places.*.floor", "notes.theme", "built_at.seconds"];
    const client = createClient(Shelves, openTransport(server.baseUrl));
    const { updateMask } = await client.updateShelf({ shelf: {}, updateMask: { paths } });
    expect([updateMask?.paths, receivedPaths]).toEqual([["name", "place.floor"], [paths]]);
  });

  test("over REST, a hidden field's path is refused like an unknown path", async () => {
    const update = async (path: string): Promise<string> => {
      const answer = await fetch(`${server.baseUrl}/v1/shelves/1?updateMask=${path}`, {
        method: "PATCH",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
      return `${answer.status} ${(await answer.text()).replaceAll(path, "PATH")}`;
    };
    expect(await update("theme")).toBe(await update("nothing"));
    expect(await update("theme")).toMatch(/^400/);
    expect(await update("name")).toMatch(/^200/);
  });
});

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
const receivedSinks: Sink[] = [];

const sinkUpstream = shared(() => {
  const registered = { registry: createRegistry(file_kitchensink_v1_legacy) };
  return listen(
    createTestGateway({ routes: (router) => router.service(KitchenSink, sinkHandlers), jsonOptions: registered }),
  );
});
const sinkHandlers: Partial<ServiceImpl<typeof KitchenSink>> = {
  create: ({ fString }, { requestHeader }) => {
    const details = [{ desc: LegacySchema, value: { name: fString, number: 5 } }];
    if (requestHeader.has("fail")) throw new ConnectError("failed", Code.Aborted, undefined, details);
    return { sink: { any } };
  },
  types: (sink) => {
    receivedSinks.push(sink);
    return { sink: { any } };
  },
};
const jsonOptions = { ignoreUnknownFields: false };

const describedBy: Readonly<Record<string, () => ProxyOptions>> = {
  "another upstream": () => ({
    upstreams: [
      { upstream: sinkUpstream.baseUrl, descriptors: sinkSet },
      { upstream: sinkUpstream.baseUrl, descriptors: legacySet },
    ],
    jsonOptions,
  }),
  jsonOptions: () => ({
    upstreams: [{ upstream: sinkUpstream.baseUrl, descriptors: sinkSet }],
    jsonOptions: { ...jsonOptions, registry: legacyTypes },
  }),
  "a service of routes": () => ({
    upstreams: [{ upstream: sinkUpstream.baseUrl, descriptors: sinkSet }],
    routes: (router) => router.service(legacySink, {}),
  }),
};

const binary: readonly (readonly [string, (baseUrl: string) => Transport])[] = [
  ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
  ["Connect", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
];

describe.each(Object.entries(describedBy))("a hidden field of a type from %s", (name, optionsOf) => {
  const proxies = [[], ["INTERNAL"]].map((allow) =>
    shared(async () => listen(await createProxy({ ...optionsOf(), visibility: { allow } }))),
  );

  test.each(binary)("is kept in Any over %s only if its label is allowed", async (_transport, openTransport) => {
    receivedSinks.length = 0;
    const sinks: Sink[] = [];
    for (const { baseUrl } of proxies) {
      const { sink } = await createClient(KitchenSink, openTransport(baseUrl)).types({ any });
      sinks.push(sink ?? expect.unreachable());
    }
    const numbers = [...receivedSinks, ...sinks].map((sink) => sink.any && anyUnpack(sink.any, LegacySchema)?.number);
    expect(numbers).toEqual([7, 5, 7, 5]);
  });

  test.each(binary)("is kept in details over %s only if its label is allowed", async (_transport, openTransport) => {
    const numbers: unknown[] = [];
    for (const { baseUrl } of proxies) {
      const client = createClient(KitchenSink, openTransport(baseUrl));
      const error = await errorOf(client.create({ fString: "a" }, { headers: { fail: "yes" } }));
      numbers.push(error.findDetails(LegacySchema).map(({ number }) => number));
    }
    expect(numbers).toEqual([[7], [5]]);
  });

  test("is kept in JSON only if its label is allowed", async () => {
    const responses: unknown[] = [];
    for (const { baseUrl } of proxies) {
      const reply = await fetch(`${baseUrl}/kitchensink.v1.KitchenSink/Types`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"any":{"@type":"type.googleapis.com/kitchensink.v1.Legacy","name":"a","number":1}}',
      });
      responses.push([reply.status, (await reply.text()).includes('"number":5')]);
    }
    // In JSON, Any messages may only have types from upstreams and from jsonOptions.registry.
    const allowed = name === "a service of routes" ? [400, false] : [200, true];
    expect(responses).toEqual([[400, false], allowed]);
  });
});
