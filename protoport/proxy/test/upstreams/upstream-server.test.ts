import { once } from "node:events";
import { createServer } from "node:tls";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createCertificate, frame, frameFlag, frameType, listenOnLoopback } from "@protoport/testing/http";
import { openGreenhouseClient, watered, wateringOf } from "../../../testing/src/gateway/greenhouse-client.ts";
// oxfmt-ignore
import { type ScriptedConnection, type ScriptedServer, grpcResponse, isSettings, startScriptedServer
} from "../../../testing/src/gateway/scripted-http2-server.ts";
import { pickServer } from "../../src/upstreams/upstream-server.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** Starts a server that closes the first connection, and sends SETTINGS on the third only after its first request. */
async function startLateServer(): Promise<ScriptedServer> {
  const settings = [frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0)];
  return await startScriptedServer({
    opening: [],
    acknowledges: false,
    frame: (connection, received) => {
      if (connection.index === 0) connection.socket.destroy();
      if (connection.index === 1 && isSettings(received)) connection.send(...settings);
    },
    request: (connection, id) => {
      connection.send(...(connection.index === 1 ? [] : settings), ...grpcResponse(id, watered));
      if (connection.index === 1) connection.socket.end();
    },
  });
}

test("a recovered server gets calls on new connections before SETTINGS arrives", async () => {
  await using server = await startLateServer();
  await using client = openGreenhouseClient({ addresses: server.baseUrl });
  expect(await wateringOf(client)).toContain("the server did not respond with HTTP/2");
  vi.advanceTimersByTime(2_000);
  expect(await wateringOf(client)).toBe("ok");
  await expect.poll(() => client.upstream.load.connections).toBe(0);
  vi.advanceTimersByTime(2_000);
  expect(await wateringOf(client)).toBe("ok");
});

// The lookups are counted after each loss, and include the first lookup of the name.
test.each([
  { order: "first, then the additional", lost: [0, 1], lookups: [2, 3] },
  { order: "additional, then the first", lost: [1, 0], lookups: [1, 2] },
])("losing the $order connection leads to $lookups lookups in total", async ({ lost, lookups }) => {
  const requests: (readonly [ScriptedConnection, streamId: number])[] = [];
  await using server = await startScriptedServer({
    request: (connection, id) => {
      requests.push([connection, id]);
      // The second call needs an additional connection, because the first call is in flight.
      if (requests.length === 2) for (const [each, streamId] of requests) each.send(...grpcResponse(streamId, watered));
    },
  });
  let count = 0;
  await using client = openGreenhouseClient({
    addresses: `dns:orders.example:${new URL(server.baseUrl).port}`,
    limits: { callsPerConnection: 1 },
    lookup: async () => {
      count++;
      return [{ address: "127.0.0.1" }];
    },
  });
  expect(await Promise.all([wateringOf(client), wateringOf(client)])).toEqual(["ok", "ok"]);
  const counts: number[] = [];
  for (const [losses, index] of lost.entries()) {
    // A name is resolved at most once a second.
    vi.advanceTimersByTime(1_000);
    requests[index]?.[0].socket.destroy();
    await expect.poll(() => client.upstream.load.connections, { interval: 1 }).toBe(1 - losses);
    counts.push(count);
  }
  expect(counts).toEqual(lookups);
});

test("HTTP/2 errors of a TLS server are reported without a certificate hint", async () => {
  const certificate = createCertificate("server");
  const listener = createServer({ ...certificate, ALPNProtocols: ["h2"] }, (socket) => {
    socket.resume().on("error", () => undefined);
    socket.write("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  const url = await listenOnLoopback(listener);
  await using client = openGreenhouseClient({ addresses: url.replace("http", "https"), tls: { ca: certificate.cert } });
  expect(await wateringOf(client)).toMatch(/the server did not respond with HTTP\/2 \(FRAME_SIZE_ERROR\)$/);
  await once(listener.close(), "close");
});

/** Returns how often each of some servers with these calls in flight is picked in 2,000 attempts. */
function countPicks(calls: readonly number[]): readonly number[] {
  const servers = calls.map((count, at) => ({ calls: count, at }));
  const counts = calls.map(() => 0);
  for (let attempt = 0; attempt < 2_000; attempt++) {
    const at = pickServer(servers)?.at ?? -1;
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts;
}

test("pickServer picks the less loaded of two different servers", () => {
  const [none = 0, one = 0, two = 0] = countPicks([0, 1, 2]);
  expect([none + one, two]).toEqual([2_000, 0]);
  // The expected numbers are 1,333 and 667. The limits are 10 standard deviations away.
  expect(none).toBeGreaterThan(1_120);
  expect(one).toBeGreaterThan(450);
});

test("pickServer picks servers with the same load equally often", () => {
  for (const count of countPicks([3, 3, 3, 3])) expect(Math.abs(count - 500)).toBeLessThan(200);
});

test("pickServer picks the only server, or none", () =>
  expect([countPicks([7]), pickServer([])]).toEqual([[2_000], undefined]));
