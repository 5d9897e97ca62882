import { expect, test } from "vitest";
import { call, createGreenhouse, openStdio } from "../../../testing/src/gateway/stdio-peer.ts";

test("beyond 32 calls, MCP on stdio queues 16 MiB, excluding cancelled requests", async () => {
  await using client = openStdio(createGreenhouse());
  for (let id = 1; id <= 32; id++) client.send(call(id, "WatchReadings", { sensor: "endless", count: 1 }));
  const sensor = "x".repeat(6 * 1024 * 1024);
  for (const id of [33, 34, 35]) client.send(call(id, "GetReading", { sensor }));
  client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 33 } });
  for (const id of [36, 37]) client.send(call(id, "GetReading", { sensor }));
  const error = { code: -32_000, message: "too many requests are queued; wait for responses" };
  for (const id of [35, 37]) expect(await client.read()).toEqual({ jsonrpc: "2.0", id, error });
});

test("at the end of the input, MCP on stdio cancels all calls with one id", async () => {
  await using client = openStdio(createGreenhouse());
  for (let count = 0; count < 2; count++) client.send(call(1, "WatchReadings", { sensor: "endless", count: 1 }));
});
