import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { GatewayOptions } from "../../src/index.ts";
import { openGreenhouse, openHttp1, startGreenhouse } from "@protoport/testing";

// The tests fire the heartbeat timer themselves. test/suites/crash waits for the interval of 15 s.

const heartbeatMs = 15_000;
const selector = "greenhouse.v1.GreenhouseService";
const rest: GatewayOptions["rest"] = {
  rules: [
    { selector: `${selector}.WatchReadings`, pattern: { case: "get", value: "/readings" } },
    { selector: `${selector}.ControlClimate`, pattern: { case: "post", value: "/climate" }, body: "*" },
  ],
};
const watchEvents = "GET /readings HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n";
const isTimeout = (timer: object): timer is NodeJS.Timeout => "refresh" in timer;

/** Observes the heartbeat timers that are started from now on. */
function watchHeartbeats() {
  const started = vi.spyOn(globalThis, "setInterval");
  const cleared = vi.spyOn(globalThis, "clearInterval");
  const all = () => started.mock.results.filter((_, at) => started.mock.calls[at]?.[1] === heartbeatMs);
  return {
    count: () => all().length,
    /** Returns the first timer. */
    timer: (): NodeJS.Timeout => {
      const timer: unknown = all()[0]?.value;
      return timer instanceof Object && isTimeout(timer) ? timer : expect.unreachable();
    },
    /** Fires the timer. */
    beat: () => started.mock.calls.find(([, everyMs]) => everyMs === heartbeatMs)?.[0](),
    areCleared: () => all().every(({ value }) => cleared.mock.calls.some(([timer]) => timer === value)),
    [Symbol.dispose]() {
      started.mockRestore();
      cleared.mockRestore();
    },
  };
}

async function* endless(): AsyncGenerator<object> {
  for (const sensor = "s".repeat(2 ** 20); ;) yield { sensor };
}

/** Collects what a connection receives. */
async function openCollecting(address: Parameters<typeof openHttp1>[0]) {
  const connection = await openHttp1(address);
  let text = "";
  connection.socket.on("data", (bytes: Buffer) => (text += bytes.toString("latin1")));
  return Object.assign(connection, { receivedText: () => text });
}

test("each message of a stream restarts its heartbeat interval", async () => {
  using heartbeats = watchHeartbeats();
  const [second, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const watchReadings = async function* () {
    yield { sensor: "one" };
    await second.promise;
    yield { sensor: "two" };
    await last.promise;
  };
  await using greenhouse = await startGreenhouse({ watchReadings }, { rest });
  using connection = await openCollecting(greenhouse.address);
  connection.write(watchEvents);
  await expect.poll(connection.receivedText).toContain("one");
  await expect.poll(heartbeats.count).toBe(1);
  expect(heartbeats.timer().hasRef()).toBe(false);
  heartbeats.beat();
  heartbeats.beat();
  await expect.poll(connection.receivedText).toMatch(/one.*\r\n3\r\n:\n\n\r\n3\r\n:\n\n\r\n$/s);
  using refreshed = vi.spyOn(heartbeats.timer(), "refresh");
  second.resolve();
  await expect.poll(connection.receivedText).toContain("two");
  expect(refreshed).toHaveBeenCalledOnce();
  expect(heartbeats.areCleared()).toBe(false);
  last.resolve();
  await expect.poll(connection.receivedText).toMatch(/event: end/);
  expect([heartbeats.count(), heartbeats.areCleared()]).toEqual([1, true]);
});

test("a bidirectional stream sends a heartbeat before its first message", async () => {
  using heartbeats = watchHeartbeats();
  const resumed = Promise.withResolvers<void>();
  const controlClimate = async function* () {
    await resumed.promise;
    yield { sensor: "late" };
  };
  await using greenhouse = await startGreenhouse({ controlClimate }, { rest });
  using connection = await openCollecting(greenhouse.address);
  connection.write(
    "POST /climate HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
  );
  await expect.poll(heartbeats.count).toBe(1);
  heartbeats.beat();
  await expect.poll(connection.receivedText).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\n1\r\n \r\n$/s);
  resumed.resolve();
  await expect.poll(connection.receivedText).toContain("late");
  expect(heartbeats.count()).toBe(1);
});

test("heartbeats pause under backpressure and stop when the client disconnects", async () => {
  using heartbeats = watchHeartbeats();
  await using connection = await openGreenhouse(openHttp1, { watchReadings: endless }, { rest });
  connection.socket.pause();
  connection.write(watchEvents);
  const heldBytes = (): number => connection.greenhouse.gateway.load.backlogBytes;
  let before = -1;
  // Waits until the system's buffers are full.
  await expect.poll(() => heldBytes() > 0 && before === (before = heldBytes()), { interval: 20 }).toBe(true);
  for (let count = 0; count < 10; count++) heartbeats.beat();
  await nextTurn();
  expect([heldBytes(), heartbeats.areCleared()]).toEqual([before, false]);
  connection.socket.destroy();
  await expect.poll(heartbeats.areCleared).toBe(true);
});
