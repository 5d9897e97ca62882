import { expect, test } from "vitest";
import { openLogLines } from "@protoport/testing/process";
import { createPlantServer } from "../../src/server/index.ts";
import { fakeStore } from "../support/plants/fake-store.ts";

test("a server logs readiness changes while it listens, until it drains", async () => {
  let problem: string | undefined;
  const store = fakeStore({});
  Object.defineProperty(store, "problem", { get: () => problem });
  const first = openLogLines("warn");
  const second = openLogLines("warn");
  const drained = createPlantServer({ store, log: first.log });
  const witness = createPlantServer({ store, log: second.log });
  const { port } = await drained.listen({ host: "127.0.0.1" });
  // A server that cannot listen logs nothing.
  await expect(createPlantServer({ store }).listen({ host: "127.0.0.1", port })).rejects.toThrow("EADDRINUSE");
  problem = "the disk is full";
  await expect.poll(first.lines).toMatchObject([{ msg: "not ready", part: "store", problem: "the disk is full" }]);
  await drained.drain();
  await witness.listen({ host: "127.0.0.1" });
  await expect.poll(second.lines).toHaveLength(1);
  problem = undefined;
  await expect.poll(second.lines).toMatchObject([{ msg: "not ready" }, { msg: "ready again", part: "store" }]);
  // The drained server, whose store is closed next, does not log the recovery.
  expect(first.lines()).toHaveLength(1);
  await witness.close();
});
