import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { frame, frameType } from "../../../testing/src/http/http2-frames.ts";
import { openGreenhouseClient, watered, wateringOf } from "../../../testing/src/gateway/greenhouse-client.ts";
import { grpcResponse, type ScriptedConnection, startScriptedServer } from "@protoport/testing/proxy";
import { reports, reportsAndFails, serving } from "./watched-server.ts";

// Health watches that end, with their backoff in simulated time.

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

test("a health watch recovers after its stream ends within a message", async () => {
  await using server = await startScriptedServer({
    request: (connection, id) => {
      // The first and the third request are watches.
      if (connection.requests === 1) connection.send(...reportsAndFails(id));
      else if (connection.requests === 3) connection.send(...reports(serving)(id));
      else connection.send(...grpcResponse(id, watered));
    },
  });
  await using client = openGreenhouseClient({ addresses: server.baseUrl, healthService: "" });
  expect(await wateringOf(client)).toBe("ok");
  expect(await wateringOf(client)).toBe("Unavailable: no server is healthy");
  // The backoff is a second, ±20 %.
  vi.advanceTimersByTime(1_200);
  await expect.poll(() => wateringOf(client)).toBe("ok");
});

test("a health watch is not repeated after its connection receives GOAWAY", async () => {
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
  const timersBefore = vi.getTimerCount();
  connections[0]?.send(frame(frameType.goAway, 0, 0, Buffer.of(0, 0, 0, 3, 0, 0, 0, 0)));
  await expect.poll(() => server.open).toBe(0);
  await expect.poll(() => client.upstream.load.connections).toBe(0);
  expect(vi.getTimerCount()).toBe(timersBefore);
});
