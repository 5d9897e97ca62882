import { createClient, type Interceptor, type StreamResponse, type UnaryResponse } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { GreenhouseService, startGreenhouse } from "@protoport/testing/proxy";
import { collect, waitSomeTurns } from "@protoport/testing/process";
import type { Message } from "@bufbuild/protobuf";
import { startProxied } from "../../../support/greenhouses.ts";

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

async function startHandlers(...interceptors: Interceptor[]) {
  const { address, ...greenhouse } = await startGreenhouse(implementation, { interceptors });
  return { ...greenhouse, baseUrl: `http://127.0.0.1:${address.port}` };
}

const startForwarding = async (...interceptors: Interceptor[]) => await startProxied(implementation, { interceptors });

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

// Without compression, messages are forwarded in the memory in which they arrived.
const uncompressed = { acceptCompression: [] };

// oxfmt-ignore
const protocols = [
  { name: "gRPC", transport: (baseUrl: string) => createGrpcTransport({ baseUrl, ...uncompressed }) },
  { name: "gRPC-Web over HTTP/2",
    transport: (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "2", ...uncompressed }) },
  { name: "gRPC-Web over HTTP/1.1",
    transport: (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1", ...uncompressed }) },
  { name: "Connect with JSON",
    transport: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false,
      ...uncompressed }) },
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
      const onHeader = (got: Headers) => headers.push(["x-service", "x-interceptor"].map((name) => got.get(name)));
      const client = createClient(GreenhouseService, transport(served.baseUrl));
      for (const _ of [1, 2]) await call(client, { onHeader });
      expect(headers).toEqual([1, 2].map(() => ["greenhouse", "late"]));
    });
  });
});

// Large enough that the engine frees a response's memory after sending the response.
const first = "oak ".repeat(25_000);
const second = "elm ".repeat(25_000);

async function startEcho(...interceptors: readonly Interceptor[]) {
  const proxy = await startProxied(
    {
      waterBed: ({ note }) => ({ note }),
      async *watchReadings({ sensor, count }) {
        for (let at = 0; at < count; at += 1) yield { sensor, degreesCelsius: at };
      },
      async *controlClimate(readings) {
        for await (const { sensor } of readings) yield { sensor };
      },
    },
    { interceptors: [...interceptors] },
  );
  const clientOf = (each: (typeof protocols)[number]) => createClient(GreenhouseService, each.transport(proxy.baseUrl));
  return { ...proxy, clientOf };
}

describe.each(protocols)("a response over $name", (protocol) => {
  test("keeps its message after the call if an interceptor retains the response", async () => {
    const kept: UnaryResponse[] = [];
    await using echo = await startEcho((next) => async (request) => {
      const response = await next(request);
      if (!response.stream) kept.push(response);
      return response;
    });
    const client = echo.clientOf(protocol);
    for (const note of [first, second]) expect((await client.waterBed({ note })).note).toBe(note);
    expect(kept.map(({ message }) => message)).toMatchObject([{ note: first }, { note: second }]);
  });

  test("keeps stream messages after the call if an interceptor retains them", async () => {
    const kept: Message[] = [];
    await using echo = await startEcho((next) => async (request) => {
      const response = await next(request);
      return response.stream ? { ...response, message: keepAll(response, kept) } : response;
    });
    const client = echo.clientOf(protocol);
    for (const sensor of [first, second])
      expect(await collect(client.watchReadings({ sensor, count: 2 }))).toMatchObject([{ sensor }, { sensor }]);
    expect(kept).toMatchObject([first, first, second, second].map((sensor) => ({ sensor })));
  });

  test.each(protocols)("is unchanged if an interceptor returns it to a later $name call", async (later) => {
    let cached: UnaryResponse | undefined;
    await using echo = await startEcho((next) => async (request) => {
      if (cached !== undefined) return cached;
      const response = await next(request);
      if (!response.stream) cached = response;
      return response;
    });
    const notes = [await echo.clientOf(protocol).waterBed({ note: first })];
    for (const note of [second, second]) notes.push(await echo.clientOf(later).waterBed({ note }, { timeoutMs: 5000 }));
    expect(notes.map(({ note }) => note === first)).toEqual([true, true, true]);
  });
});

async function* keepAll({ message }: StreamResponse, kept: Message[]): AsyncGenerator<Message> {
  for await (const item of message) {
    kept.push(item);
    yield item;
  }
}
