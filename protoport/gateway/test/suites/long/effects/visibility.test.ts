// oxfmt-ignore
import { create, type DescMethod, type DescMethodUnary, fromBinary, type MessageInitShape, toBinary, toJsonString
} from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import type { sendUnaryData, ServerUnaryCall, UntypedServiceImplementation } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { addGrpcJsService } from "../../../../../grpc-handlers/src/grpc-js.ts";
import { collect, errorOf, exchangeHttp1, statelessRequest } from "@protoport/testing";
import { isGreenhouse, restrictedServices } from "../../../../../testing/src/gateway/restricted.ts";
import { serveWithHandler } from "../../../../../testing/src/gateway/serve-with-handler.ts";
import { createFetchGateway } from "../../../../src/fetch/entry.ts";
// oxfmt-ignore
import { type BoundAddress, createGateway, type Gateway, type GatewayOptions, visibleServices
} from "../../../../src/index.ts";
import { createMcp } from "../../../../src/mcp/index.ts";
import { createReflectionService, ServerReflection } from "../../../../src/reflection/index.ts";

// google.api.visibility in the gateway. Handlers serve the complete definition, and callers see part of it.

const services = restrictedServices();
const greenhouse = services.find(isGreenhouse) ?? GreenhouseService;
const maintenance = services.find(({ name }) => name === "Maintenance") ?? greenhouse;
const rinse = maintenance.methods.find(isUnary) ?? greenhouse.method.waterBed;

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

type Received = { readonly method: DescMethod; readonly note: string; readonly mode: number | undefined };
const received: Received[] = [];
const kept = { bed: 1n, liters: 2, note: "secret", mode: 2 };

const recordRequests: Interceptor = (next) => (request) => {
  if (!request.stream) received.push({ method: request.method, ...partsOf(request.message) });
  return next(request);
};

function partsOf(message: object): Pick<Received, "note" | "mode"> {
  const { note = "not set", mode }: Partial<Received> = message;
  return { note, mode };
}

function optionsFor(allow: readonly string[]): GatewayOptions {
  const visibility = { allow };
  const reflection = createReflectionService(visibleServices(services, visibility));
  return {
    visibility,
    mcp: createMcp({ tools: [`${greenhouse.typeName}.*`] }),
    interceptors: [recordRequests],
    routes: (router) => {
      router.service(greenhouse, {
        getReading: ({ sensor }) => ({ sensor, degreesCelsius: 20 }),
        waterBed: (request, { method }) => {
          received.push({ method, ...partsOf(request) });
          return kept;
        },
        recordReadings: async (readings, { method }) => {
          for await (const reading of readings) received.push({ method, ...partsOf(reading) });
          return { count: 1 };
        },
        async *watchReadings({ count }) {
          for (let at = 1; at <= count; at += 1) yield { degreesCelsius: at, mode: 2 };
          const detail = { desc: greenhouse.method.waterBed.output, value: kept };
          throw new ConnectError("dry", Code.DataLoss, undefined, [detail]);
        },
      });
      router.service(maintenance, {});
      router.service(ServerReflection, reflection);
    },
  };
}

const servers: Readonly<Record<string, (gateway: Gateway) => Gateway>> = {
  "a listening gateway": (gateway) => gateway,
  "a handler in servers of node": serveWithHandler,
};

const transports: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "Connect with JSON": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
  "gRPC-Web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
};

const urlOf = ({ address, port }: BoundAddress): string => `http://${address}:${port}`;

const askMcp = async (at: BoundAddress, method: string, params = {}): Promise<string> =>
  String((await exchangeHttp1(at, statelessRequest(method, params))).body);

describe.each(Object.entries(servers))("visibility on %s", (_, serveOn) => {
  const partners = serveOn(createGateway(optionsFor([])));
  const colleagues = serveOn(createGateway(optionsFor(["INTERNAL"])));
  let partnersAt: BoundAddress;
  let colleaguesAt: BoundAddress;

  beforeAll(async () => {
    partnersAt = await partners.listen({ host: "127.0.0.1" });
    colleaguesAt = await colleagues.listen({ host: "127.0.0.1" });
  });
  afterAll(async () => {
    await partners.close();
    await colleagues.close();
  });

  describe.each(Object.entries(transports))("over %s", (_protocol, open) => {
    test("a hidden RPC and an RPC of a hidden service are unimplemented", async () => {
      const transport = open(urlOf(partnersAt));
      const hidden = createClient(greenhouse, transport).getReading({ sensor: "a" });
      expect(await errorOf(hidden)).toMatchObject({ code: Code.Unimplemented });
      const ofHiddenService = transport.unary(rinse, undefined, undefined, undefined, {});
      expect(await errorOf(ofHiddenService)).toMatchObject({ code: Code.Unimplemented });
      const allowed = createClient(greenhouse, open(urlOf(colleaguesAt))).getReading({ sensor: "a" });
      expect(await allowed).toMatchObject({ degreesCelsius: 20 });
    });

    test("hidden fields and enum values reach neither the handler nor the caller", async () => {
      received.length = 0;
      const client = createClient(greenhouse, open(urlOf(partnersAt)));
      const request = { bed: 1n, note: "mine", mode: 2 };
      const response = await client.waterBed(request);
      expect(response).toMatchObject({ bed: 1n, liters: 2, note: "", mode: 0 });
      expect(response).not.toHaveProperty("$unknown");
      const seen = { method: greenhouse.method.waterBed, note: "", mode: 0 };
      expect(received).toEqual([seen, seen]);
      expect(kept).toMatchObject({ note: "secret", mode: 2 });
    });

    test("hidden enum values are removed from the messages of streams", async () => {
      received.length = 0;
      for (const at of [partnersAt, colleaguesAt]) {
        const client = createClient(greenhouse, open(urlOf(at)));
        await client.recordReadings(toStream([{ sensor: "a", mode: 2 }]));
        for await (const reading of client.watchReadings({ count: 1 })) {
          expect(reading).toMatchObject({ degreesCelsius: 1, mode: at === partnersAt ? 0 : 2 });
          break;
        }
      }
      expect(received.map(({ mode }) => mode)).toEqual([0, 2]);
    });

    test("the details of an error do not contain hidden fields", async () => {
      const detailsFor = async (at: BoundAddress): Promise<readonly unknown[]> => {
        const messages = createClient(greenhouse, open(urlOf(at))).watchReadings({ count: 1 });
        return ConnectError.from(await errorOf(collect(messages))).findDetails(greenhouse.method.waterBed.output);
      };
      expect(await detailsFor(partnersAt)).toMatchObject([{ bed: 1n, note: "", mode: 0 }]);
      expect(await detailsFor(colleaguesAt)).toMatchObject([kept]);
    });
  });

  async function waterOverRest(at: BoundAddress, body: string): Promise<readonly [number, string]> {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body };
    const response = await fetch(`${urlOf(at)}/beds/1:water`, init);
    return [response.status, await response.text()];
  }

  test("hidden RPCs, fields and enum values are unknown over REST", async () => {
    const paths = ["/sensors/a/reading", "/sensors/a/nothing"].map((path) => fetch(urlOf(partnersAt) + path));
    const [hidden, unknown] = await Promise.all(
      (await Promise.all(paths)).map(async (each) => [each.status, await each.text()]),
    );
    expect([hidden, hidden?.[0]]).toEqual([unknown, 404]);
    expect((await fetch(`${urlOf(colleaguesAt)}/sensors/a/reading`)).status).toBe(200);
    const [status, text] = await waterOverRest(partnersAt, '{"nope":"mine"}');
    expect(await waterOverRest(partnersAt, '{"note":"mine"}')).toEqual([400, text.replaceAll("nope", "note")]);
    expect([status, (await waterOverRest(partnersAt, '{"mode":"FLOOD"}'))[0]]).toEqual([400, 400]);
    expect(await waterOverRest(partnersAt, '{"mode":"SPRAY"}')).toEqual([200, '{"bed":"1","liters":2}']);
    expect((await waterOverRest(colleaguesAt, '{"mode":"FLOOD"}'))[1]).toContain('"note":"secret","mode":"FLOOD"');
  });

  test("MCP tools and their results do not contain hidden parts", async () => {
    const listed = await askMcp(partnersAt, "tools/list");
    expect(listed).toContain("_WaterBed");
    expect(listed).not.toMatch(/GetReading|note|FLOOD/);
    expect(await askMcp(colleaguesAt, "tools/list")).toMatch(/GetReading[^]*note/);
    const call = (name: string): Promise<string> =>
      askMcp(partnersAt, "tools/call", { name: `greenhouse_v1_GreenhouseService_${name}`, arguments: {} });
    expect((await call("GetReading")).replaceAll("GetReading", "NoReading")).toBe(await call("NoReading"));
    expect(await call("WaterBed")).toMatch(/^(?![^]*secret)[^]*liters/);
  });

  async function reflect(at: BoundAddress, symbol: string): Promise<string> {
    const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: urlOf(at) }));
    const requests = [
      { messageRequest: { case: "listServices", value: "" } },
      { messageRequest: { case: "fileContainingSymbol", value: symbol } },
    ] as const;
    const responses = await collect(client.serverReflectionInfo(toStream(requests)));
    return responses
      .flatMap(({ messageResponse: { case: kind, value } }) =>
        kind === "fileDescriptorResponse"
          ? value.fileDescriptorProto.map((bytes) => Buffer.from(bytes).toString("latin1"))
          : [JSON.stringify(value)],
      )
      .join("\n");
  }

  test("reflection does not return hidden parts", async () => {
    const part = await reflect(partnersAt, greenhouse.typeName);
    expect(part).toContain("WaterBed");
    expect(part).not.toMatch(/GetReading\b|note|FLOOD|Maintenance|Rinse/);
    expect(await reflect(partnersAt, maintenance.typeName)).toContain("not found");
    expect(await reflect(colleaguesAt, greenhouse.typeName)).toMatch(/note[^]*FLOOD[^]*GetReading[^]*Rinse/);
  });
});

const unchanged = (bytes: Buffer): Buffer => bytes;

async function* toStream<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}

test.each([
  ["a stream without hidden parts", ["INTERNAL"]],
  ["a stream with hidden parts", []],
])("%s ends immediately when the caller cancels", async (_, allow) => {
  const { promise: returned, resolve } = Promise.withResolvers<string>();
  const waiting: AsyncIterable<object> = {
    [Symbol.asyncIterator]() {
      let count = 0;
      return {
        next: () =>
          count++ === 0
            ? Promise.resolve({ done: false, value: { degreesCelsius: 1, mode: 2 } })
            : Promise.withResolvers<IteratorResult<object>>().promise,
        return() {
          resolve("returned");
          return Promise.resolve({ done: true, value: undefined });
        },
      };
    },
  };
  const routes: GatewayOptions["routes"] = (router) => router.service(greenhouse, { watchReadings: () => waiting });
  const gateway = createGateway({ visibility: { allow }, routes });
  onTestFinished(() => gateway.close());
  const baseUrl = urlOf(await gateway.listen({ host: "127.0.0.1" }));
  const client = createClient(greenhouse, createGrpcTransport({ baseUrl }));
  const cancel = new AbortController();
  const read = async (): Promise<void> => {
    for await (const { degreesCelsius } of client.watchReadings({ count: 1 }, { signal: cancel.signal }))
      if (degreesCelsius === 1) cancel.abort();
  };
  expect([await errorOf(read()), await returned]).toMatchObject([{ code: Code.Canceled }, "returned"]);
});

test.each([
  ["do not contain hidden parts", [], [0, '{"bed":"1","liters":2}']],
  [
    "are unchanged if their label is allowed",
    ["INTERNAL"],
    [2, '{"bed":"1","liters":2,"note":"secret","mode":"FLOOD"}'],
  ],
] as const)("messages of a grpc-js handler %s", async (_, allow, wanted) => {
  const { input, output } = greenhouse.method.waterBed;
  let mode: number | undefined;
  const waterBed = {
    path: "/greenhouse.v1.GreenhouseService/WaterBed",
    requestStream: false,
    responseStream: false,
    requestSerialize: unchanged,
    requestDeserialize: (bytes: Uint8Array) => fromBinary(input, bytes),
    responseSerialize: (message: MessageInitShape<typeof output>) =>
      Buffer.from(toBinary(output, create(output, message))),
    responseDeserialize: unchanged,
  };
  const handlers: UntypedServiceImplementation = {
    waterBed: ({ request }: ServerUnaryCall<object, object>, callback: sendUnaryData<object>) => {
      ({ mode } = partsOf(request));
      callback(null, kept);
    },
  };
  const routes: GatewayOptions["routes"] = (router) =>
    addGrpcJsService(router, { waterBed }, handlers, { descriptors: services });
  const gateway = createGateway({ routes, visibility: { allow } });
  const binary = await gateway.fetch(
    new Request(`http://a${waterBed.path}`, {
      method: "POST",
      headers: { "content-type": "application/proto" },
      body: toBinary(input, create(input, kept)),
    }),
  );
  const response = fromBinary(output, new Uint8Array(await binary.arrayBuffer()));
  expect([mode, toJsonString(output, response)]).toEqual(wanted);
  expect(response).not.toHaveProperty("$unknown");
});

describe("an allowed label that no definition uses", () => {
  const routes: GatewayOptions["routes"] = (router) => router.service(greenhouse, {});
  const visibility = { allow: ["INTERNAL", " PARTNER ", "INTERNAL, BETA"] };
  const warning = 'the visibility label " PARTNER " has no effect: the definitions use INTERNAL';

  test("causes a warning from createGateway with the labels in use", () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    createGateway({ routes, visibility });
    expect(warn.mock.calls).toEqual([[warning]]);
  });

  test("causes a console warning from createFetchGateway", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    createFetchGateway({ routes, visibility });
    expect(warn.mock.calls).toEqual([[warning]]);
  });
});

test("visibility causes a warning from createGateway if no definition has a rule", () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  onTestFinished(() => warn.mockRestore());
  createGateway({ routes: (router) => router.service(GreenhouseService, {}), visibility: { allow: [] } });
  createGateway({ routes: (router) => router.service(greenhouse, {}), visibility: { allow: [] } });
  expect(warn.mock.calls).toEqual([["visibility has no effect: the definitions have no google.api.visibility rules"]]);
});
