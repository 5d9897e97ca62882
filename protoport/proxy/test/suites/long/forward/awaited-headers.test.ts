import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { GreenhouseService, startGreenhouse, startProxy } from "@protoport/testing/proxy";
import { collect, waitSomeTurns } from "@protoport/testing/process";

const implementation: Parameters<typeof startGreenhouse>[0] = {
  async *watchReadings({ sensor }, { responseHeader }) {
    responseHeader.set("x-service", "greenhouse");
    yield { sensor };
  },
  async recordReadings(readings, { responseHeader }) {
    responseHeader.set("x-service", "greenhouse");
    return { count: (await collect(readings)).length };
  },
  async *controlClimate(readings, { responseHeader }) {
    responseHeader.set("x-service", "greenhouse");
    for await (const { sensor } of readings) yield { sensor };
  },
};

/** Serves the greenhouse with its handlers. */
async function startHandlers(...interceptors: Interceptor[]) {
  const { address, ...greenhouse } = await startGreenhouse(implementation, { interceptors });
  return { ...greenhouse, baseUrl: `http://127.0.0.1:${address.port}` };
}

/** Serves the greenhouse behind a proxy. */
async function startForwarding(...interceptors: Interceptor[]) {
  const upstream = await startGreenhouse(implementation);
  const options = { interceptors };
  const proxy = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [GreenhouseService.file], options);
  return {
    baseUrl: proxy.baseUrl,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

async function headerOfUpstream(header: Headers): Promise<void> {
  while (!header.has("x-service")) await new Promise(setImmediate);
}

/** Yields the messages after an action. Reads the first message early, so that the upstream responds. */
async function* after<Item>(action: () => Promise<void>, messages: AsyncIterable<Item>): AsyncGenerator<Item> {
  const iterator = messages[Symbol.asyncIterator]();
  const first = iterator.next();
  await action();
  for (let item = await first; item.done !== true; item = await iterator.next()) yield item.value;
}

async function* sending() {
  yield { sensor: "bed" };
}

type GreenhouseClient = ReturnType<typeof createClient<typeof GreenhouseService>>;
type CallOptions = Parameters<GreenhouseClient["recordReadings"]>[1];

const kinds = [
  { rpc: "a server stream", call: (client, options) => collect(client.watchReadings({ sensor: "bed" }, options)) },
  { rpc: "a client stream", call: (client, options) => client.recordReadings(sending(), options) },
  { rpc: "a stream in both directions", call: (client, options) => collect(client.controlClimate(sending(), options)) },
] satisfies { rpc: string; call: (client: GreenhouseClient, options: CallOptions) => Promise<unknown> }[];
const protocols = [
  { name: "gRPC", transport: (baseUrl: string) => createGrpcTransport({ baseUrl }) },
  { name: "gRPC-Web", transport: (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }) },
  {
    name: "Connect with JSON",
    transport: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false }),
  },
];

describe.each([
  { served: "a handler", start: startHandlers, arrived: () => Promise.resolve() },
  { served: "an upstream", start: startForwarding, arrived: headerOfUpstream },
])("an interceptor of $served", ({ start, arrived }) => {
  describe.each(protocols)("over $name", ({ transport }) => {
    const rows = kinds.flatMap((kind) => [
      { ...kind, until: "it returns" },
      { ...kind, until: "the first message" },
    ]);
    test.each(rows)("can, until $until, set $rpc's response header", async ({ call, until }) => {
      await using served = await start((next) => async (request) => {
        const response = await next(request);
        const set = async (): Promise<void> => {
          await arrived(response.header);
          await waitSomeTurns();
          response.header.set("x-interceptor", "late");
        };
        if (response.stream && until !== "it returns") return { ...response, message: after(set, response.message) };
        await set();
        return response;
      });
      const headers: (string | null)[][] = [];
      const onHeader = (header: Headers) =>
        headers.push(["x-service", "x-interceptor"].map((name) => header.get(name)));
      const client = createClient(GreenhouseService, transport(served.baseUrl));
      for (const _ of [1, 2]) await call(client, { onHeader });
      expect(headers).toEqual([1, 2].map(() => ["greenhouse", "late"]));
    });
  });
});
