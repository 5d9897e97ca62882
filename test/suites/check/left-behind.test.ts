import { connect } from "node:net";
import { expect, test } from "vitest";
import { silentLog } from "@protoport/telemetry/logs";
import { startGreenhouse } from "@protoport/testing";
import { watchStoreFailure } from "../../../src/server/start-server.ts";
import { openMemoryStore } from "../../../src/index.ts";

// If the source folder moved, the check for leftovers would find nothing.

/** Returns the test that opened each open resource, and the nearest function. */
const openResources = (): string[] =>
  Array.from(globalThis.leftovers?.open ?? [], ([{ callers }, { name }]) => `${name}: ${callers[0] ?? ""}`);

test("the leftover check detects resources from the packages", async () => {
  await using greenhouse = await startGreenhouse({});
  const socket = connect(greenhouse.address);
  const want = expect.stringMatching(/from the packages: .*\/protoport\/gateway\/src\/http\//);
  await expect.poll(openResources).toContainEqual(want);
  socket.destroy();
});

test("the leftover check detects resources from the plant store", () => {
  const watch = watchStoreFailure(openMemoryStore(), silentLog);
  const want = expect.stringMatching(/from the plant store: .*\/src\/server\/start-server.ts/);
  expect(openResources()).toContainEqual(want);
  watch.stop();
});
