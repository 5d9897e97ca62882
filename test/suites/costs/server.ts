import { Code, ConnectError } from "@connectrpc/connect";
import { subscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { GreenhouseService, type Reading } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { AdmitRequest, Gateway } from "../../../packages/gateway/src/index.ts";
import { createTestGateway } from "../../../packages/testing/src/gateway/test-engine.ts";
import { collectGarbage } from "../../../packages/testing/src/carriers/held-bytes.ts";
import type { Answers, Question } from "../../support/costs/measured-server.ts";
import { startKitchenSink } from "../../../packages/testing/src/gateway/kitchen-sink.ts";
import { startPlantServer } from "../../support/server/plant-server.ts";
import { createCertificate } from "../../../packages/testing/src/carriers/certificate.ts";

// The server whose costs are measured: a process of its own, so that nothing of its clients is counted. It is asked
// over IPC what it holds and what it has spent.

const sockets = new Set<Socket>();
let closedSocketsReadBytes = 0;
subscribe("net.server.socket", (message) => {
  if (!(message instanceof Object && "socket" in message && message.socket instanceof Socket)) return;
  const { socket } = message;
  sockets.add(socket);
  socket.once("close", () => {
    sockets.delete(socket);
    closedSocketsReadBytes += socket.bytesRead;
  });
});

/** Whether node's pool is to be used up, as on a busy server. */
let poolIsUsed = false;

/** What takes long here takes until the next release. */
let released = Promise.withResolvers<void>();

/** Takes long to refuse a request that asks for it, refuses those of proxies, and admits all others at once. */
function admit(request: AdmitRequest): void | Promise<void> {
  const { header } = request;
  if (header.get("wait") !== null) return released.promise.then(refuse);
  // As a limit of calls, a challenge and a log do.
  const isProxied = header.get("x-forwarded-for") !== null || header.get("forwarded") !== null;
  if (isProxied && [request.peer, request.origin, request.peer].length > 0) refuse();
}

function refuse(): never {
  throw new ConnectError("not you", Code.Unauthenticated);
}

const plants = await startPlantServer();
const plantsOverTls = await startPlantServer({ tls: createCertificate("plants") });
// Any may hold whatever its services reach, an Any too.
const kitchenSink = await startKitchenSink({ jsonOptions: {} });
const service = GreenhouseService.typeName;
function createGreenhouse(fields: "x-forwarded" | "forwarded"): Gateway {
  return createTestGateway({
    routes: (router) =>
      router.service(GreenhouseService, {
        // Needs its message until then.
        getReading: async ({ sensor, $unknown = [] }) => {
          await released.promise;
          return $unknown.length > 0 ? {} : { sensor };
        },
        waterBed: ({ bed, liters, note }, { responseTrailer }) => {
          if (note === "with a trailer") responseTrailer.set("x-watered", "yes");
          if (poolIsUsed) useUpPool();
          return { bed, liters, note };
        },
        recordReadings: async (readings: AsyncIterable<Reading>) => {
          let count = 0;
          for await (const _ of readings) count++;
          return { count };
        },
        watchReadings: async function* ({ sensor, count }) {
          for (let i = 0; i < count; i++) {
            yield { sensor };
            if (sensor.startsWith("one-by-one")) await nextTurn();
          }
          if (sensor === "later") await released.promise;
        },
        // Takes its time for each reading.
        controlClimate: async function* (readings: AsyncIterable<Reading>): AsyncGenerator<{ sensor: string }> {
          for await (const { sensor } of readings) {
            yield { sensor };
            await released.promise;
          }
        },
      }),
    admit,
    trustedProxies: { addresses: ["127.0.0.0/8", "10.0.0.0/8"], fields },
    rest: {
      rules: [
        { selector: `${service}.WatchReadings`, pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
        { selector: `${service}.RecordReadings`, pattern: { case: "post", value: "/readings" }, body: "*" },
      ],
    },
  });
}

const greenhouseAddress = await createGreenhouse("x-forwarded").listen();
const forwardedGreenhouseAddress = await createGreenhouse("forwarded").listen();

const answers: { readonly [Q in Question]: () => Promise<Answers[Q]> } = {
  addresses: async () => ({
    plants: plants.address,
    plantsOverTls: plantsOverTls.address,
    greenhouse: greenhouseAddress,
    forwardedGreenhouse: forwardedGreenhouseAddress,
    kitchenSink: kitchenSink.address,
  }),
  held: async () => {
    await untilQuiet();
    collectGarbage();
    // The memory of buffers is given back a turn later.
    await nextTurn();
    collectGarbage();
    const { heapUsed, external, rss } = process.memoryUsage();
    return { bytes: heapUsed + external, residentBytes: rss, readBytes: readBytes() };
  },
  release: async () => release(),
  usePool: async () => {
    poolIsUsed = true;
    usePool(Buffer.allocUnsafe(1));
  },
  quiet: untilQuiet,
  spent: async () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  alone: async () => {
    // Calls that were sent ahead begin one after the other, and each is waited for.
    for (; sockets.size > 0; await nextTurn()) release();
    // Connections that end with a reset cancel their calls a moment later.
    await untilQuiet();
  },
};

function release(): void {
  released.resolve();
  released = Promise.withResolvers();
}

/**
 * Uses up what is left of node's pool whenever something was taken from it since the last turn, as a busy server would:
 * what is kept of the pool then keeps all of its 64 KiB.
 */
function usePool(before: Buffer): void {
  const next = Buffer.allocUnsafe(1);
  // Slices begin at multiples of 8 bytes.
  const isUnused = next.buffer === before.buffer && next.byteOffset === before.byteOffset + 8;
  // Not at each turn of an idle process, which would take a whole processor.
  if (isUnused) return void setTimeout(usePool, 1, next);
  useUpPool();
  setImmediate(usePool, Buffer.allocUnsafe(1));
}

function useUpPool(): void {
  for (let halves = 0; halves < 2; halves++) Buffer.allocUnsafe(Buffer.poolSize / 2 - 1);
}

async function answer(question: Question): Promise<void> {
  process.send?.({ answer: await answers[question]() });
}

process.on("message", (question: Question) => void answer(question));
process.once("disconnect", () => process.exit());

/** Waits until the sockets have read and written nothing for some turns of the event loop. */
async function untilQuiet(): Promise<void> {
  for (let turns = 0, before = -1; turns < 20; turns++) {
    const now = [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, readBytes());
    if (now !== before) turns = 0;
    before = now;
    await nextTurn();
  }
}

function readBytes(): number {
  return [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, closedSocketsReadBytes);
}
