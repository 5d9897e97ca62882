import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer } from "node:http";
import { Server, Socket } from "node:net";
import { expect, test } from "vitest";
import { createTestGateway, isNodeEngine } from "../../../../testing/src/gateway/test-engine.ts";
import { exchange } from "../../../../testing/src/gateway/wire-format.ts";
import type { Address, HttpRequest, HttpVersion } from "../../../../testing/src/http/exchange.ts";
import { openHttp1 } from "../../../../testing/src/http/http1-connection.ts";
import { startOnLoopback } from "../../../../testing/src/http/listen-on-loopback.ts";
import { startGreenhouse } from "../../../../testing/src/gateway/greenhouse.ts";
import { startOnNode } from "../../../../testing/src/gateway/on-node.ts";
import { waitSomeTurns } from "../../../../testing/src/wait-some-turns.ts";

const channels = ["http.server.request.start", "http.server.response.finish"] as const;

interface Published {
  readonly channel: string;
  readonly message: unknown;
  /** The response's status at that time, if it had one. */
  readonly status: readonly unknown[];
  /** The message's request at that time. */
  readonly request: object;
  /** How many bytes the message's socket had accepted at that time. */
  readonly sentBytes: unknown;
}

/** Records what is published on the two channels until disposed. */
function recordPublished(
  names: readonly string[] = channels,
): { readonly published: readonly Published[] } & Disposable {
  const published: Published[] = [];
  const listener = (message: unknown, name: string | symbol): void => {
    const response = memberOf(message, "response");
    const status = [memberOf(response, "statusCode"), memberOf(response, "headersSent")];
    const sentBytes = memberOf(memberOf(message, "socket"), "bytesWritten");
    published.push({ channel: String(name), message, status, request: describe(message), sentBytes });
  };
  for (const name of names) subscribe(name, listener);
  return { published, [Symbol.dispose]: () => names.forEach((name) => unsubscribe(name, listener)) };
}

function memberOf(object: unknown, name: string): unknown {
  return typeof object === "object" && object !== null ? Reflect.get(object, name) : undefined;
}

const request: HttpRequest = {
  httpMethod: "GET",
  path: "/sensors/7/reading?x=1",
  header: [
    ["x-one", "1"],
    ["x-two", "2"],
    ["x-two", "3"],
    ["cookie", "a=b"],
  ],
};

/** The properties of a request that node's objects and ours both have. */
function describe(message: unknown): object {
  const published = memberOf(message, "request");
  const socket = memberOf(message, "socket");
  const members = ["method", "url", "httpVersion"].map((name) => [name, memberOf(published, name)]);
  const headers = Object.entries(Object(memberOf(published, "headers"))).filter(([name]) => !/^:|^host$/.test(name));
  return {
    ...Object.fromEntries(members),
    headers: Object.fromEntries(headers),
    keys: Object.keys(Object(message)).toSorted(),
    isRaw: [memberOf(published, "rawHeaders")].flat().includes("x-two"),
    isOfSocket: memberOf(published, "socket") === socket && socket instanceof Socket,
    isServer: memberOf(message, "server") instanceof Server,
  };
}

async function readingOf(address: Address, version: HttpVersion): Promise<readonly Published[]> {
  using recorder = recordPublished();
  await exchange(address, version, request);
  await expect.poll(() => recorder.published.length).toBe(2);
  return recorder.published;
}

// On node:http, node itself publishes its own objects.
const versions: readonly HttpVersion[] = isNodeEngine ? ["2"] : ["1.1", "2"];

test.each(versions)("a request over HTTP/%s is published on node's diagnostics channels", async (version) => {
  await using greenhouse = await startGreenhouse({ getReading: () => ({}) });
  await using nodes = await startOnLoopback(createServer((_, response) => response.end("{}")));
  const [nodesStart] = await readingOf(nodes.address, "1.1");
  if (nodesStart === undefined) throw new TypeError("node has published nothing");
  const [start, finish] = await readingOf(greenhouse.address, version);
  if (start === undefined || finish === undefined) throw new TypeError("the gateway has published nothing");
  const want = { ...nodesStart.request, ...(version === "2" && { httpVersion: "2.0" }) };
  expect(start.request).toEqual(want);
  expect([start.channel, finish.channel]).toEqual(channels);
  expect(finish.message).toBe(start.message);
  // The parameter does not exist.
  expect([start.status, finish.status]).toEqual([
    [0, false],
    [400, true],
  ]);
});

test.each<HttpVersion>(["1.1", "2"])("on node's servers, a request over HTTP/%s is published once", async (version) => {
  await using greenhouse = await startOnNode({});
  const published = await readingOf(greenhouse.address, version);
  expect(published.map(({ channel }) => channel)).toEqual(channels);
});

test("on node's servers, requests on different connections publish the same server", async () => {
  await using greenhouse = await startOnNode({});
  const published = [await readingOf(greenhouse.address, "1.1"), await readingOf(greenhouse.address, "1.1")].flat();
  expect(new Set(published.map(({ message }) => memberOf(message, "socket"))).size).toBe(2);
  expect(new Set(published.map(({ message }) => memberOf(message, "server"))).size).toBe(1);
});

test.each(channels)("a subscriber of only the channel %s gets its message", async (name) => {
  await using greenhouse = await startGreenhouse({ getReading: () => ({}) });
  using recorder = recordPublished([name]);
  await exchange(greenhouse.address, "1.1", request);
  await expect.poll(() => recorder.published.map(({ channel }) => channel)).toEqual([name]);
});

test("a client that disconnects causes a start event without a finish event", async () => {
  const called = Promise.withResolvers<AbortSignal>();
  await using greenhouse = await startGreenhouse({
    getReading: async (_, { signal }) => {
      called.resolve(signal);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return {};
    },
  });
  using recorder = recordPublished();
  const client = await openHttp1(greenhouse.address);
  client.socket.write("GET /sensors/7/reading HTTP/1.1\r\nhost: x\r\n\r\n");
  await called.promise;
  client.socket.resetAndDestroy();
  await greenhouse.completed(1);
  await greenhouse.gateway.close();
  expect(recorder.published.map(({ channel }) => channel)).toEqual(["http.server.request.start"]);
});

test("a stream is published as finished after its last message", async () => {
  await using greenhouse = await startGreenhouse({
    async *watchReadings() {
      yield {};
      // A stream that ends in the same turn is a complete response.
      await waitSomeTurns();
      startedBefore.push(recorder.published.length);
    },
  });
  using recorder = recordPublished();
  const startedBefore: number[] = [];
  await exchange(greenhouse.address, "1.1", {
    httpMethod: "POST",
    path: "/greenhouse.v1.GreenhouseService/WatchReadings",
    header: [["content-type", "application/connect+json"]],
    body: Buffer.from([0, 0, 0, 0, 2, 123, 125]),
  });
  await expect.poll(() => recorder.published.map(({ channel }) => channel)).toEqual(channels);
  expect(startedBefore).toEqual([1]);
  const [, finish] = recorder.published;
  expect(finish?.sentBytes).toBe(memberOf(memberOf(finish?.message, "socket"), "bytesWritten"));
});

test.each(versions)("an invalid HTTP/%s request is not published", async (version) => {
  await using greenhouse = await startGreenhouse({ getReading: () => ({}) });
  using recorder = recordPublished();
  await exchange(greenhouse.address, version, { httpMethod: "GET", path: "/no#fragment", header: [] });
  await exchange(greenhouse.address, version, request);
  await expect.poll(() => recorder.published.map(({ channel }) => channel)).toEqual(channels);
});

test("a mounted gateway does not publish requests, because its server does", async () => {
  const gateway = createTestGateway({ routes: () => {} });
  await using nodes = await startOnLoopback(createServer(gateway.handler));
  const published = await readingOf(nodes.address, "1.1");
  expect(published.map(({ status }) => status[0])).toEqual([200, 404]);
});
