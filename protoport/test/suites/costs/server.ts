import { Code, ConnectError } from "@connectrpc/connect";
import { subscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { GreenhouseService, type Reading } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { AdmitRequest, Gateway } from "../../../gateway/src/index.ts";
import { createMcp } from "../../../gateway/src/mcp/index.ts";
import { collectGarbage, createCertificate, createTestGateway, startKitchenSink } from "@protoport/testing";
import type { Answers, Question } from "../../support/costs/measured-server.ts";
import { createGuardedGateway } from "../../support/costs/guarded-gateway.ts";

// The server whose costs are measured, in a separate process, so that its clients do not count. The server reports over
// IPC the memory that it holds and the CPU time that it has used.

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

/** Whether to use up node's buffer pool, as a busy server does. */
let poolIsUsed = false;

/** Slow operations wait for this promise until the client releases them. */
let released = Promise.withResolvers<void>();

/** Refuses requests from proxies, refuses requests with the field `wait` slowly, and admits all others immediately. */
function admit(request: AdmitRequest): void | Promise<void> {
  const { header } = request;
  if (header.get("wait") !== null) return released.promise.then(refuse);
  // Reads the request's addresses and origin, as a rate limit, a challenge and a log do.
  const isProxied = header.get("x-forwarded-for") !== null || header.get("forwarded") !== null;
  if (isProxied && [request.peer, request.origin, request.peer].length > 0) refuse();
}

function refuse(): never {
  throw new ConnectError("not you", Code.Unauthenticated);
}

const guardedAddress = await createGuardedGateway().listen();
const guardedOverTlsAddress = await createGuardedGateway().listen({ tls: createCertificate("greenhouse") });
// An Any may contain all types in the services, including Any.
const mcp = createMcp({ tools: ["kitchensink.v1.KitchenSink.Plain"] });
const kitchenSink = await startKitchenSink({ jsonOptions: {}, mcp });
const service = GreenhouseService.typeName;
const createGreenhouse = (fields: "x-forwarded" | "forwarded"): Gateway =>
  createTestGateway({
    routes: (router) =>
      router.service(GreenhouseService, {
        // Keeps the request message until the release.
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
        // Handles each reading slowly.
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

const greenhouseAddress = await createGreenhouse("x-forwarded").listen();
const forwardedGreenhouseAddress = await createGreenhouse("forwarded").listen();

const answers: { readonly [Q in Question]: () => Promise<Answers[Q]> } = {
  addresses: async () => ({
    guarded: guardedAddress,
    guardedOverTls: guardedOverTlsAddress,
    greenhouse: greenhouseAddress,
    forwardedGreenhouse: forwardedGreenhouseAddress,
    kitchenSink: kitchenSink.address,
  }),
  held: async () => {
    await untilQuiet();
    collectGarbage();
    // Buffers' memory is released one event loop turn later.
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
    // Pipelined calls start one after the other, so each must be released.
    for (; sockets.size > 0; await nextTurn()) release();
    // Connections that are reset cancel their calls a moment later.
    await untilQuiet();
  },
};

function release(): void {
  released.resolve();
  released = Promise.withResolvers();
}

/**
 * Like a busy server, uses up the rest of node's buffer pool after each turn in which it was used. A retained slice
 * then retains all 64 KiB.
 */
function usePool(before: Buffer): void {
  const next = Buffer.allocUnsafe(1);
  // Slices start at multiples of 8 bytes.
  const isUnused = next.buffer === before.buffer && next.byteOffset === before.byteOffset + 8;
  // Pauses, because running in each turn of an idle process would use a whole core.
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

/** Waits until the sockets have been idle for some event loop turns. */
async function untilQuiet(): Promise<void> {
  for (let turns = 0, before = -1; turns < 20; turns++) {
    const now = [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, readBytes());
    if (now !== before) turns = 0;
    before = now;
    await nextTurn();
  }
}

const readBytes = (): number => [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, closedSocketsReadBytes);
