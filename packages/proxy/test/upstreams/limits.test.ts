import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { toBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  GreenhouseService,
  RecordReadingsResponseSchema,
} from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, type UpstreamOptions } from "../../src/client/index.ts";
import { defaultHttp2Limits } from "../../../http-engine/src/http2/index.ts";
import { ConnectBackoff } from "../../src/upstreams/connect-backoff.ts";
import * as defaults from "../../src/upstreams/upstream-limits.ts";
import { frame, frameBytes, frameType, resetFrame } from "../../../testing/src/carriers/http2-frames.ts";
import { settingFrame } from "../../../testing/src/http2/http2-requests.ts";
import { startOnLoopback } from "../../../testing/src/carriers/listen-on-loopback.ts";
import { within } from "../../../testing/src/deadline.ts";
import {
  answering,
  type GreenhouseClient,
  openGreenhouse,
  outcomeOf,
  watered,
} from "../../../testing/src/gateway/greenhouse-client.ts";
import { envelope, grpcAnswer, startScriptedServer } from "../../../testing/src/gateway/scripted-http2-server.ts";

// What each limit of an upstream does, made small enough to be reached.

function clientOf(addresses: string, options: Omit<UpstreamOptions, "addresses">): GreenhouseClient {
  return openGreenhouse({ addresses, ...options });
}

test("waits get longer up to a limit, by chance a fifth more or less, until there is a connection", () => {
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
  expect(one.waits).toBe(true);
  one.succeeded();
  expect(one.waits).toBe(false);
  expect(one.failed(0)).toBeLessThanOrEqual(1_200);
});

const { toClientLimits, upstreamLimits } = defaults;
const { waitingCalls, queuedBytes, connectTimeoutMs, closeTimeoutMs, idleTimeoutMs } = upstreamLimits;
const { callsPerConnection, streamsBeforeSettings, queueTimeoutMs, surplusIdleTimeoutMs } = upstreamLimits;
const { connectionsDefault, connectionsMax } = defaults;

// Each where users read it: on the page, or at the option.
test.each([
  {
    file: "docs/how-to/transports.md",
    says: [
      `${connectionsDefault} connections to each server`,
      `${text(callsPerConnection)} calls on each`,
      `up to ${text(waitingCalls)} wait`,
      `after ${queueTimeoutMs / 1000} s with`,
      `closed after ${surplusIdleTimeoutMs / 1000} s without a call`,
      `bytes (${queuedBytes / 1024 ** 2} MiB)`,
      `the time for a connection (${connectTimeoutMs / 1000} s)`,
      `looked up every ${defaults.defaultResolveEveryMs / 1000} seconds`,
    ],
  },
  {
    file: "packages/proxy/src/upstreams/upstream-options.ts",
    says: [
      `from 1 to ${text(connectionsMax)}. Default ${connectionsDefault}.`,
      `is sent a PING. Default ${defaults.defaultKeepaliveMs / 1000} s.`,
      `if calls are made. Default ${defaults.defaultResolveEveryMs / 1000} s.`,
    ],
  },
  {
    file: "packages/proxy/src/upstreams/upstream-limits.ts",
    says: [
      `further ones fail. ${text(waitingCalls)}:`,
      `calls that begin fail. ${queuedBytes / 1024 ** 2} MiB.`,
      `of a server that is connected. ${queueTimeoutMs / 1000} s:`,
      `which only a burst needs. ${surplusIdleTimeoutMs / 60_000} min.`,
      `whatever its server allows: ${text(callsPerConnection)},`,
      `how many it takes. ${streamsBeforeSettings}:`,
      `or a name looked up. ${connectTimeoutMs / 1000} s:`,
      `after the upstream was closed. ${closeTimeoutMs / 1000} s,`,
      `a connection is closed. ${idleTimeoutMs / 60_000} min,`,
      `Connections to a server at most, unless set. ${connectionsDefault}:`,
      `can be set to. ${text(connectionsMax)}:`,
      `are left out. ${text(defaults.serversMax)}:`,
      `connections are lost. ${defaults.lookupGapMs / 1000} s.`,
    ],
  },
])("$file says what the defaults are", ({ file, says }) => {
  const words = readFileSync(new URL(`../../../../${file}`, import.meta.url), "utf8").replaceAll(/\s+/g, " ");
  expect(says.filter((part) => !words.includes(part))).toEqual([]);
});

function text(count: number): string {
  return count.toLocaleString("en");
}

test("a request waits for its server as long as its caller does, and a silent server is asked first", () => {
  const limits = { ...upstreamLimits, callsPerConnection: 10 };
  expect(toClientLimits(limits, 5, 7)).toMatchObject({
    concurrentStreams: 10,
    connectionWindowBytes: 10 * defaultHttp2Limits.streamWindowBytes,
    idleTimeoutMs: 7,
    stallTimeoutMs: 5,
    blockedTimeoutMs: Number.POSITIVE_INFINITY,
  });
  const { stallTimeoutMs } = toClientLimits(limits, Number.MAX_SAFE_INTEGER, 7);
  expect(stallTimeoutMs).toBe(defaultHttp2Limits.stallTimeoutMs);
});

test("calls wait for a stream up to a limit", async () => {
  const answers: (() => void)[] = [];
  await using server = await startScriptedServer({
    request: (connection, id) => answers.push(() => connection.send(...grpcAnswer(id, watered))),
  });
  await using client = clientOf(server.baseUrl, { connections: 1, limits: { waitingCalls: 2, callsPerConnection: 1 } });
  const call = (): Promise<string> => outcomeOf(client.greenhouse.waterBed({}));
  const first = call();
  await expect.poll(() => answers.length).toBe(1);
  const waiting = [call(), call()];
  await expect.poll(() => client.upstream.load).toMatchObject({ calls: 1, waitingCalls: 2 });
  expect(await call()).toBe("ResourceExhausted: too many calls wait for the server");
  for (let i = 0; i < 3; i++) {
    answers[i]?.();
    await expect.poll(() => answers.length).toBe(Math.min(i + 2, 3));
  }
  expect(await Promise.all([first, ...waiting])).toEqual(["ok", "ok", "ok"]);
});

test("a connection has no more calls at once than the limit says", async () => {
  await using server = await startScriptedServer({});
  await using client = clientOf(server.baseUrl, { connections: 1, limits: { callsPerConnection: 2 } });
  const calls = Array.from({ length: 6 }, () => outcomeOf(client.greenhouse.waterBed({})));
  await expect.poll(() => server.requests).toBe(2);
  await expect.poll(() => client.upstream.load).toMatchObject({ calls: 2, waitingCalls: 4 });
  await client.upstream.drain(1);
  await Promise.all(calls);
});

test("a server that has not spoken yet is trusted with some calls, or with as many as it took before", async () => {
  const sockets: Socket[] = [];
  await using server = await startOnLoopback(createServer((socket) => sockets.push(socket.resume())));
  const client = clientOf(server.baseUrl, { limits: { streamsBeforeSettings: 3 } });
  expect(client.upstream.ready).toBe(true);
  const calls = Array.from({ length: 6 }, () => outcomeOf(client.greenhouse.waterBed({})));
  // As it is being connected to, and afterwards.
  expect(client.upstream.ready).toBe(true);
  await expect.poll(() => client.upstream.load).toMatchObject({ calls: 3, waitingCalls: 3 });
  await expect.poll(() => sockets.length).toBe(1);
  // As the connection ends, the calls that wait go to another.
  sockets[0]?.end(frameBytes(settingFrame(3, 2)));
  await expect.poll(() => [sockets.length, client.upstream.load]).toMatchObject([2, { calls: 2, waitingCalls: 1 }]);
  await client.upstream.drain(1);
  await Promise.all(calls);
});

test("calls that begin fail while too many bytes wait to be sent", async () => {
  // It never opens its window, of 65,535 bytes.
  await using server = await startScriptedServer({});
  await using client = clientOf(server.baseUrl, { limits: { queuedBytes: 20_000 } });
  const note = "n".repeat(70_000);
  const controller = new AbortController();
  const large = [1, 2].map((bed) =>
    outcomeOf(client.greenhouse.waterBed({ bed: BigInt(bed), note }, { signal: controller.signal })),
  );
  await expect.poll(() => client.upstream.load.queuedBytes).toBeGreaterThan(20_000);
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toBe("ResourceExhausted: too many bytes wait to be sent");
  controller.abort();
  await Promise.all(large);
  expect(client.upstream.load.queuedBytes).toBe(0);
});

test("a server that does not complete the handshake is given up", async () => {
  await using server = await startOnLoopback(createServer((socket) => socket.resume()));
  await using client = clientOf(server.baseUrl.replace("http:", "https:"), { limits: { connectTimeoutMs: 50 } });
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toMatch(
    /^Unavailable: cannot connect to 127\.0\.0\.1:\d+: no connection within 50 ms$/,
  );
});

test("a connection that is being opened is given up when the upstream is closed", async () => {
  await using server = await startOnLoopback(createServer((socket) => socket.resume()));
  const { greenhouse, upstream } = clientOf(server.baseUrl.replace("http:", "https:"), {});
  const call = outcomeOf(greenhouse.waterBed({}));
  await expect.poll(() => server.sockets.size).toBe(1);
  await within(upstream.close(), "the end", 5_000);
  expect(await call).toBe("Unavailable: the transport is closed");
  // Before it would have been given up anyway.
  await expect.poll(() => server.sockets.size, { timeout: 5_000 }).toBe(0);
});

test("a call that waits gets a connection as soon as the server goes away from the first", async () => {
  // Without another look.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  await using server = await startScriptedServer({
    request: (connection, id) => {
      if (connection.index > 0) connection.send(...grpcAnswer(id, watered));
      else setTimeout(() => connection.send(frame(frameType.goAway, 0, 0, Buffer.of(0, 0, 0, 1, 0, 0, 0, 0))), 20);
    },
  });
  await using client = clientOf(server.baseUrl, { limits: { callsPerConnection: 1 } });
  const first = outcomeOf(client.greenhouse.waterBed({}));
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toBe("ok");
  await client.upstream.drain(1);
  expect(await first).toBe("Unavailable: the connection was lost");
});

test("calls that are not answered end some time after the upstream was closed", async () => {
  await using server = await startScriptedServer({});
  const { greenhouse, upstream } = clientOf(server.baseUrl, { limits: { closeTimeoutMs: 50 } });
  const call = outcomeOf(greenhouse.waterBed({}));
  await expect.poll(() => server.requests).toBe(1);
  await within(upstream.close(), "the end", 5_000);
  expect(await call).toBe("Unavailable: the connection was lost");
  expect(upstream.load).toMatchObject({ connections: 0, calls: 0 });
});

test("a drain lets calls end, and lasts no longer than they do", async () => {
  const asked = Promise.withResolvers<() => void>();
  await using server = await startScriptedServer({
    request: (connection, id) => asked.resolve(() => connection.send(...grpcAnswer(id, watered))),
  });
  const { greenhouse, upstream } = clientOf(server.baseUrl, {});
  const call = outcomeOf(greenhouse.waterBed({}));
  const answer = await asked.promise;
  const drained = upstream.drain(60_000);
  expect(upstream.ready).toBe(false);
  expect(await outcomeOf(greenhouse.waterBed({}))).toMatch(/^Unavailable/);
  answer();
  await within(drained, "the end", 5_000);
  expect(await call).toBe("ok");
  await expect.poll(() => server.open).toBe(0);
  expect(server.frames.filter(({ type }) => type === frameType.goAway)).toHaveLength(1);
});

test("a connection without calls is closed after a while, and the next call opens another", async () => {
  await using server = await startScriptedServer(answering);
  await using client = clientOf(server.baseUrl, { limits: { idleTimeoutMs: 50 } });
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toBe("ok");
  await expect.poll(() => server.open, { timeout: 10_000 }).toBe(0);
  expect(await outcomeOf(client.greenhouse.waterBed({}))).toBe("ok");
  expect(server.connections).toBe(2);
});

test.each([
  { sentBytes: 60_000, attempts: 2, want: "ok" },
  { sentBytes: 70_000, attempts: 1, want: "Unavailable: the server has refused the call" },
])("a stream of $sentBytes bytes that is refused is sent $attempts times", async ({ sentBytes, attempts, want }) => {
  let received = 0;
  const refused = Promise.withResolvers<void>();
  await using server = await startScriptedServer({
    // Room for both attempts.
    opening: [frame(frameType.settings, 0, 0), frame(frameType.windowUpdate, 0, 0, Buffer.of(0, 16, 0, 0))],
    frame: (connection, { type, streamId, payload }) => {
      if (type !== frameType.data) return;
      received += payload.byteLength;
      // What its window lets through of the message, which is all that it can know of.
      if (received < Math.min(sentBytes, 65_000) || streamId !== 1) return;
      connection.send(resetFrame(streamId, 7));
      refused.resolve();
    },
    request: (connection, id) => {
      const answer = { $typeName: "greenhouse.v1.RecordReadingsResponse", count: 1, meanDegreesCelsius: 0 } as const;
      connection.send(...grpcAnswer(id, envelope(toBinary(RecordReadingsResponseSchema, answer))));
    },
  });
  await using client = clientOf(server.baseUrl, {});
  async function* input(): AsyncGenerator<{ sensor: string }> {
    yield { sensor: "x".repeat(sentBytes) };
    await refused.promise;
  }
  // By a policy, too, only what is known whole is sent again.
  const backoff = { initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };
  const retry = { ...backoff, maxAttempts: 5, retryableCodes: [Code.Unavailable] };
  const greenhouse = createClient(GreenhouseService, createGrpcTransport({ baseUrl: client.upstream, retry }));
  expect(await outcomeOf(greenhouse.recordReadings(input()))).toBe(want);
  const streams = server.frames.filter(({ type }) => type === frameType.headers).map(({ streamId }) => streamId);
  expect(streams).toHaveLength(attempts);
});
