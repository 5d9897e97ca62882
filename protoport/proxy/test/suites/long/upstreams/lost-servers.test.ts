import { expect, test } from "vitest";
import { startRelay } from "../../../../../testing/src/http/relay.ts";
import { openGreenhouseClient, respondWatered, startScriptedServer, wateringOf } from "@protoport/testing/proxy";

test("a frozen server gets calls only after it sends SETTINGS again", async () => {
  await using frozen = await startScriptedServer(respondWatered);
  await using relay = await startRelay({ address: "127.0.0.1", port: Number(new URL(frozen.baseUrl).port) });
  await using server = await startScriptedServer(respondWatered);
  await using client = openGreenhouseClient({ addresses: [relay.baseUrl, server.baseUrl], keepaliveMs: 200 });
  const call = (): Promise<string> => wateringOf(client);
  await expect.poll(async () => [await call(), client.upstream.load.connections]).toEqual(["ok", 2]);
  await expect.poll(async () => [await call(), frozen.requests > 0 && server.requests > 0]).toEqual(["ok", true]);
  relay.stall();
  // The first calls to the frozen server fail, because nothing shows yet that it is frozen.
  await expect
    .poll(async () => [await call(), client.upstream.load.connections].join(), { interval: 0 })
    .not.toBe("ok,2");
  const outcomes = new Set<string>();
  for (let i = 0; i < 50; i++) outcomes.add(await call());
  expect(outcomes).toEqual(new Set(["ok"]));
});
