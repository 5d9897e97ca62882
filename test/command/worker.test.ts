import cluster from "node:cluster";
import { expect, test, vi } from "vitest";
import type { Ended } from "../support/process/run-command.ts";
import { followOrders, supervisorStop, workerVariable } from "../../src/command/worker.ts";

const startServer = vi.fn(async (..._options: readonly unknown[]) => Promise.reject(new Error("stopped")));
vi.doMock("../../src/server/index.ts", async (original) => ({ ...(await original<object>()), startServer }));
const { runCommand } = await import("../support/process/run-command.ts");

/** Returns the listeners that `act` adds to the process, by event. They are not added. */
function listenersOf(act: () => unknown): ReadonlyMap<unknown, (value?: unknown) => void> {
  using on = vi.spyOn(process, "on").mockReturnValue(process);
  using once = vi.spyOn(process, "once").mockReturnValue(process);
  act();
  return new Map([...on.mock.calls, ...once.mock.calls]);
}

test("a worker reloads and reports when its supervisor orders it", () => {
  const reload = vi.fn(async () => {});
  const problems = { store: "the disk is full" };
  const server = { reload, collectMetrics: () => [], problems: () => problems };
  const onMessage = listenersOf(() => followOrders(server)).get("message");
  using send = vi.spyOn(process, "send").mockReturnValue(true);
  for (const order of ["drain", "reload"]) onMessage?.(order);
  expect([reload.mock.calls.length, send.mock.calls]).toEqual([1, []]);
  onMessage?.("report");
  expect([reload.mock.calls.length, send.mock.calls]).toEqual([1, [[{ metrics: [], problems }]]]);
});

test.for([
  ["message", "drain"],
  ["disconnect", undefined],
])("a worker ignores signals, and stops on the event %s %s", async ([event, value]) => {
  const ended: string[] = [];
  const listeners = listenersOf(() => supervisorStop().then((stop) => ended.push(stop)));
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"]) listeners.get(name)?.();
  listeners.get("message")?.("reload");
  await new Promise(setImmediate);
  ended.push("other events");
  listeners.get(event)?.(value);
  await new Promise(setImmediate);
  expect([ended, new Set(listeners.keys())]).toEqual([
    ["other events", "drain"],
    new Set(["SIGHUP", "SIGINT", "SIGTERM", "disconnect", "message"]),
  ]);
});

test.for([
  ["collects metrics for", "127.0.0.1:9090", true],
  ["collects no metrics without", "", false],
] as const)("a worker %s its supervisor's admin address", async ([, address, want]) => {
  using _ = vi.spyOn(process, "disconnect").mockReturnValue();
  using isWorker = vi.spyOn(cluster, "isWorker", "get").mockReturnValue(true);
  const environment = { [workerVariable]: "on", DATABASE_URL: "memory:", PLANTSTORE_ADMIN_ADDRESS: address };
  const serving: Promise<Ended>[] = [];
  // The process does not get the worker's listeners.
  listenersOf(() => serving.push(runCommand(["serve"], environment)));
  expect(await Promise.all(serving)).toMatchObject([{ exitCode: 1, err: ["plantstore: stopped"] }]);
  expect(startServer.mock.lastCall).toMatchObject([{ adminAddress: undefined }, { collectsMetrics: want }]);
  expect(isWorker).toHaveBeenCalled();
});
