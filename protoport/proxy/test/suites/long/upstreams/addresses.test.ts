import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createGrpcTransport, createUpstream } from "../../../../src/client/index.ts";
import { createGateway } from "../../../../../gateway/src/index.ts";
import { readUpstreamAddress } from "../../../../src/upstreams/upstream-address.ts";
// oxfmt-ignore
import { openGreenhouseClient, respondWatered, type Script, startScriptedServer, wateringOf
} from "@protoport/testing/proxy";
import { createCertificate, frameType, listenOnLoopback, waitSomeTurns } from "@protoport/testing";

// Tests which server gets a call when a name's addresses change, servers are unreachable, or servers are loaded.

// Intervals are faked, so that events start calls instead of the periodic check.
beforeEach(() => void vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());
const certificate = createCertificate("server");
const portOf = (baseUrl: string): number => Number(new URL(baseUrl).port);

/** Starts three servers, at three addresses with the same port. */
async function startThreeServers(script: Script) {
  const first = await startScriptedServer(script);
  const port = portOf(first.baseUrl);
  const second = await startScriptedServer(script, { host: "127.0.0.2", port });
  const servers = [first, second, await startScriptedServer(script, { host: "127.0.0.3", port })];
  return {
    port,
    servers,
    [Symbol.asyncDispose]: async () => {
      for (const server of servers) await server[Symbol.asyncDispose]();
    },
  };
}

test("calls are distributed over all addresses of a host name", async () => {
  await using three = await startThreeServers(respondWatered);
  const hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
  await using client = openGreenhouseClient({
    addresses: `dns:orders.example:${three.port}`,
    lookup: async () => hosts.map((address) => ({ address })),
  });
  expect(await wateringOf(client)).toBe("ok");
  // One call opens at most two connections, even after some time.
  await expect.poll(() => client.upstream.load.connections).toBe(2);
  await waitSomeTurns();
  expect(client.upstream.load.connections).toBe(2);
  for (let round = 0; round < 15; round++) {
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => wateringOf(client)));
    expect(new Set(outcomes)).toEqual(new Set(["ok"]));
  }
  for (const { requests, connections } of three.servers) {
    expect(requests).toBeGreaterThan(15);
    expect(connections).toBe(1);
  }
  const refusals = { queue_full: 0, queue_timeout: 0, unsent_bytes: 0 };
  const idle = { calls: 0, waitingCalls: 0, queuedBytes: 0, refusals };
  expect(client.upstream.load).toEqual({ servers: 3, connections: 3, ...idle });
});

test("a queued call goes to the new address after a lost connection", async () => {
  let hosts = ["127.0.0.1"];
  const old = await startScriptedServer({});
  const port = portOf(old.baseUrl);
  await using other = await startScriptedServer(respondWatered, { host: "127.0.0.2", port });
  await using client = openGreenhouseClient({
    addresses: `dns:orders.example:${port}`,
    limits: { callsPerConnection: 1 },
    lookup: async () => hosts.map((address) => ({ address })),
  });
  const sent = wateringOf(client);
  await expect.poll(() => old.requests).toBe(1);
  const queued = wateringOf(client);
  hosts = ["127.0.0.2"];
  vi.advanceTimersByTime(1_000);
  await old[Symbol.asyncDispose]();
  expect([await sent, await queued, other.requests]).toEqual(["Unavailable: the connection was lost", "ok", 1]);
});

test.each([
  ["is unknown", () => Promise.reject(new Error("ENOTFOUND")), "ENOTFOUND"],
  ["has no address", () => Promise.resolve([]), "no address found"],
  ["is not resolved in time", () => new Promise<never>(() => undefined), "timed out after 50 ms"],
])("calls to a host that %s fail without lookups during the backoff", async (_name, lookup, reason) => {
  let lookups = 0;
  await using client = openGreenhouseClient({
    addresses: "dns:orders.example:1",
    limits: { connectTimeoutMs: 50 },
    lookup: () => {
      lookups++;
      return lookup();
    },
  });
  expect(client.upstream.ready).toBe(true);
  // Concurrent calls share one lookup, and later calls do not wait.
  const together = await Promise.all([wateringOf(client), wateringOf(client)]);
  for (let i = 0; i < 3; i++) {
    expect(together[i] ?? (await wateringOf(client))).toBe(`Unavailable: cannot look up orders.example: ${reason}`);
    expect(client.upstream.ready).toBe(false);
  }
  expect(lookups).toBe(1);
});

test("a successful connection resets the backoff of a server", async () => {
  const first = await startScriptedServer({});
  const at = { host: "127.0.0.1", port: portOf(first.baseUrl) };
  await first[Symbol.asyncDispose]();
  await using client = openGreenhouseClient({ addresses: first.baseUrl });
  for (let failures = 0; failures < 5; failures++) {
    expect(await wateringOf(client)).toMatch(/^Unavailable/);
    vi.advanceTimersByTime(10_000);
  }
  const second = await startScriptedServer(respondWatered, at);
  expect(await wateringOf(client)).toBe("ok");
  await second[Symbol.asyncDispose]();
  await expect.poll(() => client.upstream.load.connections).toBe(0);
  expect(await wateringOf(client)).toMatch(/^Unavailable/);
  vi.advanceTimersByTime(1_250);
  await using _ = await startScriptedServer(respondWatered, at);
  expect(await wateringOf(client)).toBe("ok");
});

test("host names are resolved by the system and verified by TLS", async () => {
  await using server = await startScriptedServer(respondWatered);
  await using plain = openGreenhouseClient({ addresses: `dns:///localhost:${portOf(server.baseUrl)}` });
  expect(await wateringOf(plain)).toBe("ok");
  const gateway = createGateway({ routes: () => undefined });
  const tls = await gateway.listen({ host: "127.0.0.1", port: 0, tls: certificate });
  await using named = openGreenhouseClient({ addresses: `dns:localhost:${tls.port}`, tls: { ca: certificate.cert } });
  expect(await wateringOf(named)).toMatch(/^Unimplemented/);
  await using other = openGreenhouseClient({
    addresses: `dns:elsewhere.example:${tls.port}`,
    tls: { ca: certificate.cert },
    lookup: async () => [{ address: "127.0.0.1" }],
  });
  expect(await wateringOf(other)).toMatch(
    /^Unavailable: cannot connect to elsewhere\.example:\d+ \(127\.0\.0\.1\): .*elsewhere\.example/,
  );
  await gateway.close();
});

test("no call fails while one of several servers is reachable", async () => {
  const gone = await startScriptedServer(respondWatered);
  await gone[Symbol.asyncDispose]();
  await using server = await startScriptedServer(respondWatered);
  for (let round = 0; round < 10; round++) {
    await using client = openGreenhouseClient({ addresses: [gone.baseUrl, server.baseUrl] });
    for (let i = 0; i < 5; i++) expect(await wateringOf(client)).toBe("ok");
    expect(client.upstream.ready).toBe(true);
  }
  const unreachable = [gone.baseUrl, gone.baseUrl.replace("127.0.0.1", "127.0.0.2")];
  await using none = openGreenhouseClient({ addresses: unreachable });
  expect(await wateringOf(none)).toMatch(/^Unavailable: cannot connect to 127\.0\.0\.[12]:\d+: .*ECONNREFUSED/);
  expect(none.upstream.ready).toBe(false);
});

test.each([
  { name: "closes connections", problem: /: the server did not respond with HTTP\/2$/ },
  {
    name: "uses HTTP/1.1",
    opening: "HTTP/1.1 400 Bad Request\r\n\r\n",
    problem: /: the server did not respond with HTTP\/2 \(FRAME_SIZE_ERROR\)$/,
  },
  { name: "uses TLS, but does not offer HTTP/2", tls: certificate, problem: /: the server does not offer HTTP\/2$/ },
])("a server that $name is not retried during the backoff", async ({ opening = "", tls, problem }) => {
  let connections = 0;
  const accept = (socket: Socket): unknown => socket.on("error", () => undefined).end(opening);
  const server = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  server.on("connection", () => connections++);
  const port = portOf(await listenOnLoopback(server));
  await using client = openGreenhouseClient({
    addresses: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    tls: { ca: certificate.cert },
  });
  expect(await wateringOf(client)).toMatch(/^Unavailable/);
  await expect.poll(() => client.upstream.load.connections).toBe(0);
  for (let i = 0; i < 3; i++) expect(await wateringOf(client)).toMatch(problem);
  expect(connections).toBe(1);
  server.close();
});

test("connections are replaced at their maximum age without losing a call", async () => {
  await using server = await startScriptedServer(respondWatered);
  await using client = openGreenhouseClient({ addresses: server.baseUrl, maxConnectionAgeMs: 20 });
  while (server.connections < 4) expect(await wateringOf(client)).toBe("ok");
  await expect.poll(() => server.open).toBeLessThan(2);
  expect(server.frames.some(({ type }) => type === frameType.goAway)).toBe(true);
});

test.each([
  [{ addresses: [] }, "addresses must not be empty"],
  [{ addresses: ["http://a", "https://b"] }, "must use TLS"],
  [{ addresses: "dns://8.8.8.8/a" }, "an upstream address must be a URL"],
  [{ addresses: "http://a?b" }, "an upstream address must be a URL"],
  [{ addresses: "http://a#b" }, "an upstream address must be a URL"],
  [{ addresses: "http://u@a" }, "an upstream address must be a URL"],
  [{ addresses: "http://:p@a" }, "an upstream address must be a URL"],
  [{ addresses: "dns:" }, "an upstream address must be a URL"],
  [{ addresses: "dns:a/b" }, "an upstream address must be a URL"],
  [{ addresses: "http://a", resolveEveryMs: 0 }, "resolveEveryMs must be between 1"],
  [{ addresses: "http://a", maxConnectionAgeMs: Number.NaN }, "maxConnectionAgeMs must be between 1"],
  [JSON.parse('{"addresses":"http://a","connections":"2"}'), "connections must be between 1 and 1000, got '2'"],
  [{ addresses: "http://a", limits: { waitingCalls: -1 } }, "limits.waitingCalls must be between 1"],
  [{ addresses: "http://a", limits: { idleTimeoutMs: 2 ** 31 } }, "limits.idleTimeoutMs must be"],
])("createUpstream rejects the options $0 with an error", (options, error) => {
  expect(() => createUpstream(options)).toThrow(error);
});

test.each([
  { text: "http://a", target: { host: "a", port: 80 } },
  { text: "https://[::1]", target: { host: "::1", port: 443 } },
  { text: "dns:a:81", target: { host: "a", port: 81 } },
  { text: "unix:/a", target: { path: "/a" } },
])("readUpstreamAddress accepts $text as an address", ({ text, target }) => {
  expect(readUpstreamAddress(text)).toMatchObject({ target });
});

test("createGrpcTransport rejects upstream options if baseUrl is an Upstream object", () => {
  const baseUrl = createUpstream({ addresses: "http://a" });
  expect(() => createGrpcTransport({ baseUrl, tls: {} })).toThrow("tls must be set in createUpstream");
});
