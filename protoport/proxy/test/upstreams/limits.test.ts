import { createServer, type Socket } from "node:net";
import { toBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService, RecordReadingsResponseSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, type UpstreamOptions } from "../../src/client/index.ts";
import { defaultHttp2Limits } from "../../../gateway/src/engine/http2/http2-limits.ts";
import { ConnectBackoff } from "../../src/upstreams/connect-backoff.ts";
import * as defaults from "../../src/upstreams/upstream-limits.ts";
import { readUpstreamOptions } from "../../src/upstreams/upstream-options.ts";
import { dataFrame, frame, frameBytes, frameType, resetFrame, startOnLoopback } from "@protoport/testing/http";
import { within } from "@protoport/testing/process";
// oxfmt-ignore
import { envelope, type GreenhouseClient, grpcResponse, openGreenhouseClient, outcomeOf, respondWatered, settingFrame,
  startScriptedServer, watered } from "@protoport/testing/proxy";

const clientOf = (addresses: string, options: Omit<UpstreamOptions, "addresses">): GreenhouseClient =>
  openGreenhouseClient({ addresses, ...options });

test("the reconnect backoff grows exponentially, and a connection resets it", () => {
  const backoffs = Array.from({ length: 100 }, () => new ConnectBackoff());
  for (let failures = 0; failures < 20; failures += 1) {
    const waits = backoffs.map((backoff) => backoff.failed(5_000) - 5_000);
    const wantMs = Math.min(1_000 * 1.6 ** failures, 120_000);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(wantMs * 0.8);
    expect(Math.min(...waits)).toBeLessThan(wantMs * 0.95);
    expect(Math.max(...waits)).toBeLessThanOrEqual(wantMs * 1.2);
    expect(Math.max(...waits)).toBeGreaterThan(wantMs * 1.05);
  }
  const [one = new ConnectBackoff()] = backoffs;
  one.failed(performance.now());
  expect(one.isWaiting).toBe(true);
  one.succeeded();
  expect(one.isWaiting).toBe(false);
  expect(one.failed(0)).toBeLessThanOrEqual(1_200);
});

test("an option of an upstream that is undefined has its default", async () => {
  // Programs in JavaScript pass such options, and so does a caller without exactOptionalPropertyTypes.
  const none: object = Object.fromEntries(Object.keys(defaults.upstreamLimits).map((name) => [name, undefined]));
  const undefinedOptions: object = { connections: undefined, keepaliveMs: undefined, resolveEveryMs: undefined };
  const without = readUpstreamOptions({ addresses: "http://a" });
  expect(readUpstreamOptions({ addresses: "http://a", ...undefinedOptions, limits: none })).toEqual(without);
  // A second upstream sets one of the limits.
  const limits = { ...none, waitingCalls: 7 };
  const changed = { connections: 2, limits: { ...without.limits, waitingCalls: 7 } };
  expect(readUpstreamOptions({ addresses: "http://a", connections: 2, limits })).toEqual({ ...without, ...changed });
});

const { toClientLimits, upstreamLimits } = defaults;

test("toClientLimits sets the stall timeout, but no blocked timeout", () => {
  const limits = { ...upstreamLimits, callsPerConnection: 10, headerBytes: 2 ** 21 };
  const windows = { concurrentStreams: 10, connectionWindowBytes: 10 * defaultHttp2Limits.streamWindowBytes };
  const header = { headerListBytes: 2 ** 21, headerBlockBytes: 2 ** 21 };
  const timeouts = { idleTimeoutMs: 7, stallTimeoutMs: 5, blockedTimeoutMs: Number.POSITIVE_INFINITY };
  const own = { ...windows, ...header, ...timeouts, continuations: 512 };
  expect(toClientLimits(limits, 5, 7)).toEqual({ ...defaultHttp2Limits, ...own });
  const { stallTimeoutMs } = toClientLimits(limits, Number.MAX_SAFE_INTEGER, 7);
  expect(stallTimeoutMs).toBe(defaultHttp2Limits.stallTimeoutMs);
});

test("calls above the limit waitingCalls are refused", async () => {
  const responders: (() => void)[] = [];
  await using server = await startScriptedServer({
    request: (connection, id) => responders.push(() => connection.send(...grpcResponse(id, watered))),
  });
  await using client = clientOf(server.baseUrl, { connections: 1, limits: { waitingCalls: 2, callsPerConnection: 1 } });
  const call = (): Promise<string> => outcomeOf(client.greenhouse.waterBed({}));
  const first = call();
  await expect.poll(() => responders.length).toBe(1);
  const waiting = [call(), call()];
  await expect.poll(() => client.upstream.load).toMatchObject({ calls: 1, waitingCalls: 2 });
  expect(await call()).toBe("ResourceExhausted: too many calls are queued for the server");
  for (let i = 0; i < 3; i++) {
    responders[i]?.();
    await expect.poll(() => responders.length).toBe(Math.min(i + 2, 3));
  }
  expect(await Promise.all([first, ...waiting])).toEqual(["ok", "ok", "ok"]);
});

test("a connection has at most callsPerConnection concurrent calls", async () => {
  await using server = await startScriptedServer({});
  await using client = clientOf(server.baseUrl, { connections: 1, limits: { callsPerConnection: 2 } });
  const calls = Array.from({ length: 6 }, () => outcomeOf(client.greenhouse.waterBed({})));
  await expect.poll(() => server.requests).toBe(2);
  await expect.poll(() => client.upstream.load).toMatchObject({ calls: 2, waitingCalls: 4 });
  await client.upstream.drain(1);
  await Promise.all(calls);
});

test("before SETTINGS arrives, a connection gets at most streamsBeforeSettings calls", async () => {
  const sockets: Socket[] = [];
  await using server = await startOnLoopback(createServer((socket) => sockets.push(socket.resume())));
  const client = clientOf(server.baseUrl, { limits: { streamsBeforeSettings: 3 } });
  expect(client.upstream.ready).toBe(true);
  const calls = Array.from({ length: 6 }, () => outcomeOf(client.greenhouse.waterBed({})));
  // Checked while the upstream connects, and afterwards.
  expect(client.upstream.ready).toBe(true);
  await expect.poll(() => client.upstream.load).toMatchObject({ calls: 3, waitingCalls: 3 });
  await expect.poll(() => sockets.length).toBe(1);
  // When the connection closes, queued calls go to another one.
  sockets[0]?.end(frameBytes(settingFrame(3, 2)));
  await expect.poll(() => [sockets.length, client.upstream.load]).toMatchObject([2, { calls: 2, waitingCalls: 1 }]);
  await client.upstream.drain(1);
  await Promise.all(calls);
});

test("new calls fail while too many bytes are queued", async () => {
  // The server never sends WINDOW_UPDATE for its 65,535-byte window.
  await using server = await startScriptedServer({});
  await using client = clientOf(server.baseUrl, { limits: { queuedBytes: 20_000 } });
  const note = "n".repeat(70_000);
  const controller = new AbortController();
  const { signal } = controller;
  const large = [1n, 2n].map((bed) => outcomeOf(client.greenhouse.waterBed({ bed, note }, { signal })));
  await expect.poll(() => client.upstream.load.queuedBytes).toBeGreaterThan(20_000);
  const refused = "ResourceExhausted: too many bytes are queued for the server";
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toBe(refused);
  controller.abort();
  await Promise.all(large);
  expect(client.upstream.load.queuedBytes).toBe(0);
});

test("a TLS handshake that does not complete times out", async () => {
  await using server = await startOnLoopback(createServer((socket) => socket.resume()));
  await using client = clientOf(server.baseUrl.replace("http:", "https:"), { limits: { connectTimeoutMs: 50 } });
  const timedOut = /^Unavailable: cannot connect to 127\.0\.0\.1:\d+: timed out after 50 ms$/;
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toMatch(timedOut);
});

test("closing the upstream cancels a connection attempt", async () => {
  await using server = await startOnLoopback(createServer((socket) => socket.resume()));
  const limits = { connectTimeoutMs: 3_600_000 };
  const { greenhouse, upstream } = clientOf(server.baseUrl.replace("http:", "https:"), { limits });
  const call = outcomeOf(greenhouse.waterBed({}));
  await expect.poll(() => server.sockets.size).toBe(1);
  await within(upstream.close(), "the end");
  expect(await call).toBe("Unavailable: the transport is closed");
  await expect.poll(() => server.sockets.size).toBe(0);
});

test("a queued call is sent on a new connection after GOAWAY", async () => {
  // Disables the periodic check.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  await using server = await startScriptedServer({
    request: (connection, id) => {
      if (connection.index > 0) connection.send(...grpcResponse(id, watered));
      else setTimeout(() => connection.send(frame(frameType.goAway, 0, 0, Buffer.of(0, 0, 0, 1, 0, 0, 0, 0))), 20);
    },
  });
  await using client = clientOf(server.baseUrl, { limits: { callsPerConnection: 1 } });
  const first = outcomeOf(client.greenhouse.waterBed({}));
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toBe("ok");
  await client.upstream.drain(1);
  expect(await first).toBe("Unavailable: the connection was lost");
});

test("calls without a response fail closeTimeoutMs after close()", async () => {
  await using server = await startScriptedServer({});
  const { greenhouse, upstream } = clientOf(server.baseUrl, { limits: { closeTimeoutMs: 50 } });
  const call = outcomeOf(greenhouse.waterBed({}));
  await expect.poll(() => server.requests).toBe(1);
  await within(upstream.close(), "the end", 5_000);
  expect(await call).toBe("Unavailable: the connection was lost");
  expect(upstream.load).toMatchObject({ connections: 0, calls: 0 });
});

test("a drain waits for calls in flight, and accepts new calls", async () => {
  const responder = Promise.withResolvers<() => void>();
  await using server = await startScriptedServer({
    request: (connection, id) => {
      const respond = (): void => connection.send(...grpcResponse(id, watered));
      if (connection.index === 0) responder.resolve(respond);
      else respond();
    },
  });
  const { greenhouse, upstream } = clientOf(server.baseUrl, {});
  const call = outcomeOf(greenhouse.waterBed({}));
  const respond = await responder.promise;
  const drained = upstream.drain(60_000);
  expect([upstream.ready, await outcomeOf(greenhouse.waterBed({}))]).toEqual([false, "ok"]);
  respond();
  await within(drained, "the end");
  expect(await call).toBe("ok");
  await expect.poll(() => server.open).toBe(0);
  expect(await outcomeOf(greenhouse.waterBed({}))).toBe("ok");
  await expect.poll(() => server.open).toBe(0);
  expect(server.frames.filter(({ type }) => type === frameType.goAway)).toHaveLength(3);
  await upstream.close();
  expect(await outcomeOf(greenhouse.waterBed({}))).toMatch(/^Unavailable/);
});

test("a drain sends queued calls, and fails the rest after its timeout", async () => {
  const responders: (() => void)[] = [];
  await using server = await startScriptedServer({
    opening: [settingFrame(3, 1)],
    request: (connection, id) => responders.push(() => connection.send(...grpcResponse(id, watered))),
  });
  const { greenhouse, upstream } = clientOf(server.baseUrl, { connections: 1 });
  const first = outcomeOf(greenhouse.waterBed({}));
  await expect.poll(() => responders.length).toBe(1);
  const queued = [2, 3].map(() => outcomeOf(greenhouse.waterBed({})));
  await expect.poll(() => upstream.load.waitingCalls).toBe(2);
  const drained = upstream.drain(200);
  responders[0]?.();
  await within(drained, "the end", 5_000);
  expect(await Promise.all([first, ...queued])).toEqual([
    "ok",
    "Unavailable: the connection was lost",
    "Unavailable: the transport is closed",
  ]);
  expect(responders).toHaveLength(2);
});

test("an upstream may send empty DATA with each response", async () => {
  await using server = await startScriptedServer({
    request: (connection, id) =>
      connection.send(...grpcResponse(id, watered).toSpliced(1, 0, dataFrame(id, Buffer.of()))),
  });
  await using client = clientOf(server.baseUrl, { connections: 1 });
  const calls = Array.from({ length: 250 }, () => outcomeOf(client.greenhouse.waterBed({})));
  expect([new Set(await Promise.all(calls)), server.connections]).toEqual([new Set(["ok"]), 1]);
});

test("an idle connection closes, and the next call opens another", async () => {
  await using server = await startScriptedServer(respondWatered);
  await using client = clientOf(server.baseUrl, { limits: { idleTimeoutMs: 50 } });
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toBe("ok");
  await expect.poll(() => server.open).toBe(0);
  expect([await outcomeOf(client.greenhouse.waterBed({})), server.connections]).toEqual(["ok", 2]);
});

test.each([
  { sentBytes: 60_000, attempts: 2, want: "ok" },
  { sentBytes: 100_000, attempts: 1, want: "Unavailable: the server refused the call" },
])("a refused stream of $sentBytes bytes is sent in $attempts attempt(s)", async ({ sentBytes, attempts, want }) => {
  let received = 0;
  const refused = Promise.withResolvers<void>();
  await using server = await startScriptedServer({
    // The window is large enough for both attempts.
    opening: [frame(frameType.settings, 0, 0), frame(frameType.windowUpdate, 0, 0, Buffer.of(0, 16, 0, 0))],
    frame: (connection, { type, streamId, payload }) => {
      if (type !== frameType.data) return;
      received += payload.byteLength;
      // The server refuses the stream once the window is full or the message is complete.
      if (received < Math.min(sentBytes, 65_000) || streamId !== 1) return;
      connection.send(resetFrame(streamId, 7));
      refused.resolve();
    },
    request: (connection, id) => {
      const response = { $typeName: "greenhouse.v1.RecordReadingsResponse", count: 1, meanDegreesCelsius: 0 } as const;
      connection.send(...grpcResponse(id, envelope(toBinary(RecordReadingsResponseSchema, response))));
    },
  });
  await using client = clientOf(server.baseUrl, {});
  async function* input(): AsyncGenerator<{ sensor: string }> {
    yield { sensor: "x".repeat(sentBytes) };
    await refused.promise;
  }
  // Even with a policy, only streams that were kept completely are retried.
  const backoff = { initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };
  const retry = { ...backoff, maxAttempts: 5, retryableCodes: [Code.Unavailable] };
  const greenhouse = createClient(GreenhouseService, createGrpcTransport({ baseUrl: client.upstream, retry }));
  expect(await outcomeOf(greenhouse.recordReadings(input()))).toBe(want);
  const streams = server.frames.filter(({ type }) => type === frameType.headers).map(({ streamId }) => streamId);
  expect(streams).toHaveLength(attempts);
});
