import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer } from "node:http";
import { constants, createServer as createHttp2Server } from "node:http2";
import { describe, expect, test } from "vitest";
import { WatchReadingsRequestSchema } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { ErrorRecordPolicy, GatewayOptions, NodeHandler } from "../../../src/index.ts";
// oxfmt-ignore
import { encodeMessage, exchange, exchangeFetch, type HttpRequest, listenOnLoopback, openHttp1, openHttp2, rpcRequest,
  startGreenhouse, startOnLoopback, waterBedProcedure, wireFormats, within } from "@protoport/testing";

// A handler finds the AsyncLocalStorage store for its own request, and never another's.

const storage = new AsyncLocalStorage<string>();
const waterBed = rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), [], waterBedProcedure);

const requests: readonly (HttpRequest & { readonly name: string })[] = [
  { name: "a call without a body", httpMethod: "GET", path: "/sensors/a/reading", header: [] },
  { name: "a REST call with a body", ...waterBed, path: "/beds/1:water" },
  { name: "an RPC", ...waterBed },
];

/** Starts a greenhouse whose handlers record their store and enter another. */
async function startNoting(options: Partial<GatewayOptions> = {}) {
  const found: unknown[] = [];
  const note = (): object => {
    found.push(storage.getStore());
    storage.enterWith("another's");
    return {};
  };
  return { found, ...(await startGreenhouse({ getReading: note, waterBed: note }, options)) };
}

describe.each(requests)("$name", (request) => {
  test.each(["1.1", "2"] as const)("over HTTP/%s does not run in another request's context", async (version) => {
    await using greenhouse = await startNoting();
    if (version === "2") {
      using connection = await openHttp2(greenhouse.address);
      await Promise.all([request, request, request].map((each) => connection.exchange(each)));
    } else {
      using connection = await openHttp1(greenhouse.address);
      connection.socket.cork();
      for (const each of [request, request, request]) connection.request(each);
      connection.socket.uncork();
      for (const { httpMethod } of [request, request, request]) await connection.readResponse(httpMethod);
    }
    expect(greenhouse.found).toEqual([undefined, undefined, undefined]);
  });

  test.each(["1.1", "2"] as const)("over HTTP/%s runs in the context that onRequest entered", async (version) => {
    await using greenhouse = await startNoting({ onRequest: () => storage.enterWith("its own") });
    await exchange(greenhouse.address, version, request);
    expect(greenhouse.found).toEqual(["its own"]);
  });

  test("runs in the middleware's context on any server", async () => {
    const greenhouse = await startNoting();
    await using _ = greenhouse;
    const { handler, fetch } = greenhouse.gateway;
    const middleware: NodeHandler = (...arguments_) => storage.run("its own", () => handler(...arguments_));
    const servers = [
      ["1.1", createServer(middleware)],
      ["2", createHttp2Server(middleware)],
    ] as const;
    for (const [version, server] of servers) {
      await using started = await startOnLoopback(server);
      await exchange(started.address, version, request);
    }
    await storage.run("its own", () => exchangeFetch(fetch, request));
    expect(greenhouse.found).toEqual(["its own", "its own", "its own"]);
  });
});

test("hooks do not run in the context of another request or connection", async () => {
  const found: unknown[] = [];
  const onRequest = (): void => {
    found.push(storage.getStore());
    storage.enterWith("another's");
  };
  await using greenhouse = await startGreenhouse({ getReading: () => ({}) }, { onRequest });
  const request: HttpRequest = { httpMethod: "GET", path: "/sensors/a/reading", header: [] };
  for (const times of [2, 2]) {
    using http1 = await openHttp1(greenhouse.address);
    using http2 = await openHttp2(greenhouse.address);
    for (let sent = 0; sent < times; sent++) {
      http1.request(request);
      await http1.readResponse("GET");
      await http2.exchange(request);
    }
  }
  expect(found).toEqual(Array.from({ length: 8 }));
});

test("a call queued by node:http runs in its own context", async () => {
  const found: unknown[] = [];
  const [refused, heldBack] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using greenhouse = await startGreenhouse({
    getReading: async () => {
      found.push(storage.getStore());
      // Waits until the next request is queued.
      await heldBack.promise;
      return {};
    },
  });
  const server = createServer((request, response) => {
    void storage.run(String(request.url), async () => {
      // Waits until the last request is refused, which closes the connection.
      if (request.url === "/sensors/b/reading") await refused.promise;
      greenhouse.gateway.handler(request, response);
      if (request.method === "POST") refused.resolve();
      if (request.url === "/sensors/b/reading") heldBack.resolve();
    });
  });
  const { hostname, port } = new URL(await listenOnLoopback(server));
  using connection = await openHttp1({ address: hostname, port: Number(port) });
  const sensors = ["a", "b"].map((sensor) => `GET /sensors/${sensor}/reading HTTP/1.1\r\nHost: a\r\n\r\n`);
  const tooLarge = "Content-Type: application/json\r\nContent-Length: 100000000\r\n\r\n";
  connection.write(`${sensors.join("")}POST /beds/1:water HTTP/1.1\r\nHost: a\r\n${tooLarge}`);
  for (const httpMethod of ["GET", "GET"]) await connection.readResponse(httpMethod);
  expect(found).toEqual(["/sensors/a/reading", "/sensors/b/reading"]);
  server.close();
});

test.each([
  ["a refused request", "GET /b HTTP/1.1\r\nHost: x y\r\n\r\n"],
  [
    "an aborted body",
    "POST /beds/1:water HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
  ],
])("the response to %s runs outside the previous call's context", async (_, behind) => {
  const found: unknown[] = [];
  const note = (): void => void found.push(storage.getStore());
  const errorRecord: ErrorRecordPolicy = ({ rawMessage }, { httpStatus }) => (note(), { httpStatus, body: rawMessage });
  const started = storage.run("the start's", () => startNoting({ onResponse: note, rest: { errorRecord } }));
  await using greenhouse = await started;
  using connection = await openHttp1(greenhouse.address);
  connection.write(`GET /sensors/a/reading HTTP/1.1\r\nHost: a\r\n\r\n${behind}`);
  for (const httpMethod of ["GET", "POST"]) await connection.readResponse(httpMethod);
  expect(greenhouse.found).toEqual([undefined]);
  const [ofCall, ...ofOther] = found;
  expect([ofCall, new Set(ofOther)]).toEqual(["another's", new Set([undefined])]);
});

function watchReadings(sensor: string): HttpRequest {
  const message = encodeMessage(wireFormats.grpc, WatchReadingsRequestSchema, { sensor });
  return rpcRequest(wireFormats.grpc, message, [], "/greenhouse.v1.GreenhouseService/WatchReadings");
}

test("streams of one connection are iterated in their own contexts", async () => {
  const strays: unknown[] = [];
  await using greenhouse = await startGreenhouse({
    async *watchReadings({ sensor }) {
      storage.enterWith(sensor);
      // Large enough to cause backpressure.
      for (let sent = 0; sent < 20; sent++) {
        yield { sensor: sensor.repeat(50_000) };
        if (storage.getStore() !== sensor) strays.push(storage.getStore());
      }
    },
  });
  using connection = await openHttp2(greenhouse.address);
  const responses = ["a", "b", "c"].map((sensor) => connection.exchange(watchReadings(sensor)));
  for (const { body } of await Promise.all(responses)) expect(body.byteLength).toBeGreaterThan(20 * 50_000);
  expect(strays).toEqual([]);
});

test("a stream that its client resets is closed in its own context", async () => {
  const ended = Promise.withResolvers<unknown>();
  const handlers = {
    async *watchReadings() {
      try {
        for (;;) yield { sensor: "x".repeat(50_000) };
      } finally {
        ended.resolve(storage.getStore());
      }
    },
  };
  await using greenhouse = await startGreenhouse(handlers, { onRequest: () => storage.enterWith("its own") });
  using connection = await openHttp2(greenhouse.address);
  const request = watchReadings("a");
  const stream = connection.open(request).end(request.body);
  await once(stream, "response");
  stream.close(constants.NGHTTP2_CANCEL);
  expect(await within(ended.promise, "the end of the stream")).toBe("its own");
});
