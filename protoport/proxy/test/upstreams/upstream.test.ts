import { createServer } from "node:net";
import { createClient, type ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport } from "../../src/client/index.ts";
import { CallQueue, type PendingCall } from "../../src/upstreams/call-queue.ts";
import { upstreamLimits } from "../../src/upstreams/index.ts";

// oxfmt-ignore
import { grpcResponse, openGreenhouseClient, outcomeOf, respondWatered, type Script, settingFrame, startScriptedServer,
  watered, wateringOf } from "@protoport/testing/proxy";
import { startOnLoopback, within } from "@protoport/testing";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

test("a lookup that returns an earlier address resets the backoff of the address", async () => {
  const gone = await startScriptedServer({});
  await gone[Symbol.asyncDispose]();
  const port = Number(new URL(gone.baseUrl).port);
  let host = "127.0.0.1";
  await using client = openGreenhouseClient({
    addresses: `dns:orders.example:${port}`,
    resolveEveryMs: 1,
    lookup: async () => [{ address: host }],
  });
  const callAt = (address: string): Promise<string> => {
    host = address;
    vi.advanceTimersByTime(2);
    return wateringOf(client);
  };
  expect(await callAt("127.0.0.1")).toContain("cannot connect");
  expect(await callAt("127.0.0.2")).toContain("cannot connect");
  await using _ = await startScriptedServer(respondWatered, { host: "127.0.0.1", port });
  expect(await callAt("127.0.0.1")).toBe("ok");
});

test("a closing upstream waits for calls at removed addresses", async () => {
  const responses: (() => void)[] = [];
  await using server = await startScriptedServer({
    request: (connection, id) => void responses.push(() => connection.send(...grpcResponse(id, watered))),
  });
  let hosts = ["127.0.0.1"];
  await using client = openGreenhouseClient({
    addresses: `dns:orders.example:${new URL(server.baseUrl).port}`,
    resolveEveryMs: 1,
    lookup: async () => hosts.map((address) => ({ address })),
  });
  const first = wateringOf(client);
  await expect.poll(() => server.requests, { interval: 1 }).toBe(1);
  hosts = ["127.0.0.2", "127.0.0.3"];
  vi.advanceTimersByTime(2);
  // The second call starts a lookup, and still goes to the old address.
  const second = wateringOf(client);
  await expect.poll(() => server.requests, { interval: 1 }).toBe(2);
  expect(client.upstream.load.servers).toBe(2);
  const closed = client.upstream.drain(60_000).then(() => "closed");
  for (const respond of responses) respond();
  expect([await Promise.race([Promise.all([first, second]), closed]), await closed]).toEqual([["ok", "ok"], "closed"]);
});

test("an attempt to connect to a removed address is cancelled", async () => {
  await using server = await startOnLoopback(createServer((socket) => socket.resume()));
  let host = "127.0.0.1";
  await using client = openGreenhouseClient({
    addresses: `dns:orders.example:${server.address.port}`,
    // The server accepts connections, and never responds to a TLS handshake.
    tls: {},
    limits: { connectTimeoutMs: 600_000 },
    resolveEveryMs: 1,
    lookup: async () => [{ address: host }],
  });
  const first = wateringOf(client);
  await expect.poll(() => server.sockets.size, { interval: 1 }).toBe(1);
  host = "127.0.0.2";
  vi.advanceTimersByTime(2);
  expect(await wateringOf(client)).toContain("(127.0.0.2)");
  expect(await first).toContain("(127.0.0.2)");
  await expect.poll(() => server.sockets.size, { interval: 1 }).toBe(0);
});

test("a call after an idle upstream's drain is aborted at the timeout", async () => {
  await using server = await startScriptedServer({});
  await using client = openGreenhouseClient({ addresses: server.baseUrl });
  await client.upstream.drain(200);
  expect(await within(wateringOf(client), "the end of the call")).toMatch(/^Unavailable: /);
});

test("the timer of maxConnectionAgeMs does not overflow", async () => {
  const random = vi.spyOn(Math, "random").mockReturnValue(0.999);
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", onWarning);
  onTestFinished(() => {
    random.mockRestore();
    process.off("warning", onWarning);
  });
  await using server = await startScriptedServer(respondWatered);
  await using client = openGreenhouseClient({ addresses: server.baseUrl, maxConnectionAgeMs: 2 ** 31 });
  expect([await wateringOf(client), warnings]).toEqual(["ok", []]);
});

test("connections are opened on demand up to the maximum", async () => {
  const held: (() => void)[] = [];
  await using server = await startScriptedServer({
    opening: [settingFrame(3, 2)],
    request: (connection, id) => void held.push(() => connection.send(...grpcResponse(id, watered))),
  });
  await using client = openGreenhouseClient({ addresses: server.baseUrl, connections: 3 });
  let changes = 0;
  client.upstream.watchServers(() => changes++);
  const calls = [wateringOf(client)];
  await expect.poll(() => held.length, { interval: 1 }).toBe(1);
  while (calls.length < 3) calls.push(wateringOf(client));
  await expect.poll(() => held.length, { interval: 1 }).toBe(3);
  expect(client.upstream.load.connections).toBe(2);
  while (calls.length < 9) calls.push(wateringOf(client));
  await expect.poll(() => held.length, { interval: 1 }).toBe(6);
  expect(client.upstream.load).toMatchObject({ connections: 3, calls: 6, waitingCalls: 3 });
  for (let at = 0; at < 9; at++) {
    await expect.poll(() => held.length, { interval: 1 }).toBeGreaterThan(at);
    held[at]?.();
  }
  expect(new Set(await Promise.all(calls))).toEqual(new Set(["ok"]));
  expect({ connections: server.connections, requests: server.requests }).toEqual({ connections: 3, requests: 9 });
  // Additional connections are not changes.
  expect(changes).toBe(1);
});

test("a call goes to the server with fewer calls in flight", async () => {
  const held: (() => void)[] = [];
  const script: Script = { request: (server, id) => void held.push(() => server.send(...grpcResponse(id, watered))) };
  await using one = await startScriptedServer(script);
  await using other = await startScriptedServer(script);
  await using client = openGreenhouseClient({ addresses: [one.baseUrl, other.baseUrl] });
  // Two queued calls connect to two servers.
  const calls = [wateringOf(client), wateringOf(client)];
  await expect.poll(() => [held.length, one.open, other.open], { interval: 1 }).toEqual([2, 1, 1]);
  for (const respond of held.splice(0)) respond();
  await Promise.all(calls);
  const before = [one.requests, other.requests];
  for (let at = 0; at < 10; at++) calls.push(wateringOf(client));
  await expect.poll(() => held.length, { interval: 1 }).toBe(10);
  expect([one.requests, other.requests].map((count, at) => count - (before[at] ?? 0))).toEqual([5, 5]);
  for (const respond of held) respond();
  expect(new Set(await Promise.all(calls))).toEqual(new Set(["ok"]));
});

test("a watchServers callback is called when a server is connected or lost", async () => {
  await using first = await startScriptedServer(respondWatered);
  const second = await startScriptedServer(respondWatered);
  await using client = openGreenhouseClient({ addresses: [first.baseUrl, second.baseUrl] });
  let changes = 0;
  const stop = client.upstream.watchServers(() => changes++);
  await expect.poll(async () => [await wateringOf(client), client.upstream.load.connections]).toEqual(["ok", 2]);
  await expect.poll(() => changes).toBe(2);
  stop();
  let laterChanges = 0;
  client.upstream.watchServers(() => laterChanges++);
  await second[Symbol.asyncDispose]();
  await expect.poll(() => laterChanges).toBe(1);
  expect(changes).toBe(2);
});

test("a watchServers callback is not called when the only server is lost", async () => {
  await using server = await startScriptedServer(respondWatered);
  await using client = openGreenhouseClient({ addresses: server.baseUrl });
  expect(await wateringOf(client)).toBe("ok");
  let changes = 0;
  client.upstream.watchServers(() => changes++);
  await server[Symbol.asyncDispose]();
  await expect.poll(() => client.upstream.load.connections).toBe(0);
  expect(changes).toBe(0);
});

test("disposing a transport leaves its shared upstream open for another user", async () => {
  await using server = await startScriptedServer(respondWatered);
  await using user = openGreenhouseClient({ addresses: server.baseUrl });
  const transport = createGrpcTransport({ baseUrl: user.upstream });
  expect(await outcomeOf(createClient(GreenhouseService, transport).waterBed({}))).toBe("ok");
  await transport[Symbol.asyncDispose]();
  expect([await wateringOf(user), user.upstream.ready, server.connections]).toEqual(["ok", true, 1]);
  await user.upstream.close();
  expect([await wateringOf(user), user.upstream.ready]).toEqual(["Unavailable: the transport is closed", false]);
});

const createCall = (refused: string[]): PendingCall => ({
  waitsForReady: true,
  begin: () => expect.unreachable(),
  refuse: ({ rawMessage }: ConnectError) => void refused.push(rawMessage),
});

const timedOut = "the call timed out waiting for a stream to the server";

test("the queue timeout restarts whenever no server serves", () => {
  const refused: string[] = [];
  const queue = new CallQueue({ ...upstreamLimits, queueTimeoutMs: 1_000 }, "orders.example");
  queue.add(createCall(refused));
  const check = (isServing: boolean): number => {
    vi.advanceTimersByTime(600);
    queue.refuseTimedOut(isServing);
    return refused.length;
  };
  // Each time that no server serves, the timeout starts again.
  expect([[false, false, true, true, false, true, true].map(check), check(true)]).toEqual([[0, 0, 0, 0, 0, 0, 0], 1]);
  expect(refused).toEqual([timedOut]);
  expect(queue.refusals).toMatchObject({ queue_timeout: 1 });
});

test("each queued call times out queueTimeoutMs after it was added", () => {
  const refused: string[][] = [[], []];
  const queue = new CallQueue({ ...upstreamLimits, queueTimeoutMs: 1_000 }, "orders.example");
  queue.refuseTimedOut(true);
  for (const each of refused) {
    vi.advanceTimersByTime(500);
    queue.add(createCall(each));
  }
  vi.advanceTimersByTime(999);
  queue.refuseTimedOut(true);
  expect(refused).toEqual([[timedOut], []]);
  vi.advanceTimersByTime(1);
  queue.refuseTimedOut(true);
  expect([refused, queue.size]).toEqual([[[timedOut], [timedOut]], 0]);
});
