import cluster from "node:cluster";
import { expect, test, vi } from "vitest";
import { runCommand } from "../support/process/run-command.ts";
import { followOrders, supervisorStop, workerVariable } from "../../src/command/worker.ts";

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
  using disconnect = vi.spyOn(process, "disconnect").mockReturnValue();
  using worker = vi.spyOn(cluster, "isWorker", "get").mockReturnValue(true);
  using send = vi.spyOn(process, "send").mockReturnValue(true);
  using on = vi.spyOn(process, "on").mockReturnValue(process);
  using once = vi.spyOn(process, "once").mockReturnValue(process);
  const order = (name: string): void => {
    for (const [event, listener] of on.mock.calls) if (event === "message") listener(name);
  };
  const serving = runCommand(
    ["serve", "--port=0", "--database-url=memory:", "--drain-delay-ms=0", "--log-level=fatal"],
    {
      [workerVariable]: "on",
      PLANTSTORE_ADMIN_ADDRESS: address,
    },
  );
  await vi.waitFor(() => (order("report"), expect(send).toHaveBeenCalled()));
  order("drain");
  expect(await serving).toMatchObject({ exitCode: 0 });
  const families = want ? expect.arrayContaining([expect.objectContaining({ name: "rpc.server.call.duration" })]) : [];
  expect(send.mock.lastCall).toEqual([{ metrics: families, problems: {} }]);
  for (const spy of [disconnect, worker, once]) expect(spy).toHaveBeenCalled();
});
