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

test("MCP on stdio cancels all calls with one id when its input ends", async () => {
  await using client = openStdio(createGreenhouse());
  for (let count = 0; count < 2; count++) client.send(call(1, "WatchReadings", { sensor: "endless", count: 1 }));
});

test("notifications/cancelled cancels all running calls with its id", async () => {
  await using client = openStdio(createGreenhouse());
  const watch = (id: number): void => client.send(call(id, "WatchReadings", { sensor: "endless", count: 1 }));
  for (const id of [1, ...Array.from({ length: 31 }, (_, at) => at + 1)]) watch(id);
  // 32 calls are running, so these two wait for two calls to end.
  watch(33);
  client.send(call(34, "GetReading", { sensor: "a" }));
  client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
  expect(await client.read()).toMatchObject({ id: 34, result: { structuredContent: { sensor: "a" } } });
});
