import { afterEach, expect, test, vi } from "vitest";
import { dataFrame, frame, frameFlag, frameType, headersFrame } from "@protoport/testing/http";
import { waitSomeTurns, within } from "@protoport/testing/process";
// oxfmt-ignore
import { envelope, grpcHead, grpcResponse, openGreenhouseClient, type ScriptedConnection, settingFrame,
  startScriptedServer, watered, wateringOf } from "@protoport/testing/proxy";
// oxfmt-ignore
import { clientOf, endsWith, notServing, reports, reportsAndFails, service, serving, startWatchedServer, status,
  unhealthy } from "./watched-server.ts";

afterEach(() => void vi.useRealTimers());

/** SERVING with an unknown field that has this size in bytes. */
function servingIn(bytes: number): Buffer {
  const rest = Buffer.alloc(bytes - 5);
  return envelope(Buffer.concat([Buffer.of(8, 1, 0x7a, (rest.byteLength & 0x7f) | 0x80, rest.byteLength >> 7), rest]));
}

test.each(
  // oxfmt-ignore
  [
    ["reports SERVING gets calls", reports(serving), "ok", undefined, undefined],
    ["reports NOT_SERVING gets no calls", reports(notServing), unhealthy, undefined, undefined],
    ["reports SERVICE_UNKNOWN gets no calls", reports(status(3)), unhealthy, undefined, undefined],
    ["sends an empty health message gets no calls", reports(envelope(Buffer.alloc(0))), unhealthy, undefined,
      undefined],
    ["reports SERVING with an unknown field gets calls", reports(servingIn(1_024)), "ok", undefined, undefined],
    ["does not implement grpc.health.v1 gets calls", endsWith("12"), "ok", undefined, undefined],
    ["responds UNIMPLEMENTED in a trailer gets calls",
      (id: number) => [headersFrame(id, grpcHead), headersFrame(id, [["grpc-status", "12"]], frameFlag.endStream)],
      "ok", undefined, undefined],
    ["responds 404 to the health watch gets calls",
      (id: number) => [headersFrame(id, [[":status", "404"]], frameFlag.endStream)], "ok", undefined, undefined],
    ["responds 404 with a text to the health watch gets calls",
      (id: number) => [headersFrame(id, [[":status", "404"]]), dataFrame(id, Buffer.from("404 page not found"))], "ok",
      1, undefined],
    ["sends GOAWAY gets no calls", () => [frame(frameType.goAway, 0, 0, Buffer.of(0, 0, 0, 0, 0, 0, 0, 11))],
      expect.stringMatching(/: the server did not respond with HTTP\/2 \(ENHANCE_YOUR_CALM\)$/), undefined, undefined],
    ["responds PERMISSION_DENIED to the health watch gets no calls", endsWith("7"), unhealthy, undefined, undefined],
    ["sends an invalid health message gets no calls", reports(Buffer.of(0, 0, 0, 0, 2, 0xff, 0xff)), unhealthy, 1,
      undefined],
    ["sends a health message above the limit gets no calls", reports(servingIn(1_025)), unhealthy, 1, undefined],
    ["compresses its health message gets no calls", reports(envelope(Buffer.of(8, 1), 1)), unhealthy, 1, undefined],
    ["splits SERVING into two DATA frames gets calls",
      (id: number) => [headersFrame(id, grpcHead), dataFrame(id, serving.subarray(0, 6)), dataFrame(id,
        serving.subarray(6))], "ok", undefined, undefined],
    ["responds to the health watch with HTML gets no calls",
      (id: number) => [headersFrame(id, [[":status", "503"], ["content-type", "text/html"]])], unhealthy, 1, undefined],
    ["reports NOT_SERVING but allows only one stream gets calls", reports(notServing), "ok", undefined,
      [settingFrame(3, 1)]],
    ["reports NOT_SERVING and allows two streams gets no calls", reports(notServing), unhealthy, undefined,
      [settingFrame(3, 2)]],
  ],
)("a server that %s", async (_name, first, want, resets = 0, opening) => {
  await using server = await startWatchedServer(first, opening);
  await using client = clientOf(server.baseUrl);
  expect([await wateringOf(client), server.calls]).toEqual([want, want === "ok" ? 1 : 0]);
  expect([client.upstream.ready, client.upstream.load.calls]).toEqual([want === "ok", 0]);
  await expect.poll(() => server.frames.filter(({ type }) => type === frameType.resetStream).length).toBe(resets);
});

test("calls go only to healthy servers as the reported health changes", async () => {
  await using one = await startWatchedServer(reports(serving));
  await using other = await startWatchedServer(reports(notServing));
  await using client = clientOf(one.baseUrl, other.baseUrl);
  for (let i = 0; i < 20; i++) expect(await wateringOf(client)).toBe("ok");
  expect(other.calls).toBe(0);
  await expect.poll(() => other.watches).toBe(1);
  other.send((id) => [dataFrame(id, serving)]);
  await within(
    (async () => {
      while (other.calls === 0) await wateringOf(client);
    })(),
    "a call to the server that is healthy now",
  );
  one.send((id) => [dataFrame(id, notServing)]);
  await expect
    .poll(async () => {
      const before = one.calls;
      await Promise.all(Array.from({ length: 10 }, () => wateringOf(client)));
      return one.calls - before;
    })
    .toBe(0);
  expect({ one: one.watches, other: other.watches }).toEqual({ one: 1, other: 1 });
});

test("a health watch that fails after a report restarts without growing backoff", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  // After this many watches without a message, the backoff would be a minute.
  const broken = 10;
  let watches = 0;
  await using server = await startWatchedServer((id) => {
    // Longer than a backoff of 1 s ±20 %.
    vi.advanceTimersByTime(1_250);
    return watches++ < broken ? reportsAndFails(id) : reports(serving)(id);
  });
  await using client = clientOf(server.baseUrl);
  await expect.poll(async () => [await wateringOf(client), watches]).toEqual(["ok", broken + 1]);
  expect(server.connections).toBe(1);
});

test("an upstream with a health watch closes immediately", async () => {
  await using server = await startWatchedServer(reports(serving));
  const client = clientOf(server.baseUrl);
  await wateringOf(client);
  await within(client.upstream.close(), "the end", 5_000);
  await expect.poll(() => server.open).toBe(0);
  expect(server.frames.at(-1)?.type).toBe(frameType.goAway);
});

test("a connection with only a health watch is closed as idle", async () => {
  await using server = await startWatchedServer(reports(serving));
  const options = { healthService: service, limits: { idleTimeoutMs: 50 } };
  await using client = openGreenhouseClient({ addresses: server.baseUrl, ...options });
  expect(await wateringOf(client)).toBe("ok");
  await expect.poll(() => server.open).toBe(0);
  expect(await wateringOf(client)).toBe("ok");
  expect({ watches: server.watches, connections: server.connections }).toEqual({ watches: 2, connections: 2 });
});

test("a failed health watch is repeated after a second, not earlier", async () => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  // Simulates a process that has run for a while.
  vi.advanceTimersByTime(60_000);
  await using server = await startWatchedServer(endsWith("7"));
  await using client = clientOf(server.baseUrl);
  expect(await wateringOf(client)).toBe(unhealthy);
  vi.advanceTimersByTime(750);
  await waitSomeTurns();
  expect(server.watches).toBe(1);
  vi.advanceTimersByTime(500);
  await expect.poll(() => server.watches).toBe(2);
});

test("a failed health watch is repeated only when a stream is available", async () => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  await using server = await startWatchedServer((id) => [settingFrame(3, 0), ...endsWith("14")(id)]);
  await using client = clientOf(server.baseUrl);
  expect(await wateringOf(client)).toBe(unhealthy);
  vi.advanceTimersByTime(1_250);
  await waitSomeTurns();
  expect(server.watches).toBe(1);
  server.send(() => [settingFrame(3, 100)]);
  await expect
    .poll(() => {
      vi.advanceTimersByTime(2_000);
      return server.watches;
    })
    .toBe(2);
});

test("a health watch recovers after its stream ends within a message", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  await using server = await startScriptedServer({
    request: (connection, id) => {
      // The first and the third request are watches.
      if (connection.requests === 1) connection.send(...reportsAndFails(id));
      else if (connection.requests === 3) connection.send(...reports(serving)(id));
      else connection.send(...grpcResponse(id, watered));
    },
  });
  await using client = openGreenhouseClient({ addresses: server.baseUrl, healthService: "" });
  expect([await wateringOf(client), await wateringOf(client)]).toEqual(["ok", "Unavailable: no server is healthy"]);
  // The backoff is a second, ±20 %.
  vi.advanceTimersByTime(1_200);
  await expect.poll(() => wateringOf(client)).toBe("ok");
});

test("a health watch is not repeated after its connection receives GOAWAY", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const connections: ScriptedConnection[] = [];
  await using server = await startScriptedServer({
    request: (connection, id) => {
      if (connection.requests === 1) {
        connections.push(connection);
        connection.send(...reports(serving)(id));
      } else connection.send(...grpcResponse(id, watered));
    },
  });
  await using client = openGreenhouseClient({ addresses: server.baseUrl, healthService: "" });
  expect(await wateringOf(client)).toBe("ok");
  connections[0]?.send(frame(frameType.goAway, 0, 0, Buffer.of(0, 0, 0, 3, 0, 0, 0, 0)));
  await expect.poll(() => server.open).toBe(0);
  await expect.poll(() => client.upstream.load.connections).toBe(0);
  // A watch that is repeated always has a timer. Timers that earlier tests started fire once.
  vi.advanceTimersByTime(600_000);
  expect(vi.getTimerCount()).toBe(0);
});
