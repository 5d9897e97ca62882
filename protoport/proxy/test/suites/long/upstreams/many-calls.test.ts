import { connect, createServer, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { type Server, Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, createUpstream, type UpstreamOptions } from "../../../../src/client/index.ts";
import { createTestGateway, frameBytes, frameFlag, frameType, startOnLoopback, waitLimitMs } from "@protoport/testing";
// oxfmt-ignore
import { type GreenhouseClient, grpcResponse, openGreenhouseClient, outcomeOf, type ScriptedConnection,
  type ScriptedServer, settingFrame, startScriptedServer, waterBedResponse, watered, wateringOf
} from "@protoport/testing/proxy";

// Tests additional connections and the queue, which calls need when a connection's streams are all in use.

/** Time limit for 20,000 calls, in milliseconds. They take 10 s, or a minute on a busy machine. */
const hangLimitMs = 10 * waitLimitMs;

async function outcomesOf({ greenhouse }: GreenhouseClient, count: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  // Has no timer for each call, unlike `wateringOf`.
  for (const result of await Promise.allSettled(Array.from({ length: count }, () => greenhouse.waterBed({})))) {
    const outcome = result.status === "fulfilled" ? "ok" : String(result.reason);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

interface Peer extends AsyncDisposable {
  readonly baseUrl: string;
}

const bytes = (value: Buffer): Buffer => value;
const handle = (_: unknown, reply: (error: null, value: Buffer) => void) => reply(null, Buffer.from(waterBedResponse));

/** Starts a grpc-js server. @param streams - its MAX_CONCURRENT_STREAMS; by default no limit */
async function startGrpcJs(streams?: number): Promise<Peer> {
  const server: Server = new GrpcServer(streams === undefined ? {} : { "grpc.max_concurrent_streams": streams });
  server.register("/greenhouse.v1.GreenhouseService/WaterBed", handle, bytes, bytes, "unary");
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, at) =>
      error === null ? resolve(at) : reject(error),
    );
  });
  return { baseUrl: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => Promise.resolve(server.forceShutdown()) };
}

async function startEngine(concurrentStreams?: number): Promise<Peer> {
  const gateway = createTestGateway({
    routes: (router) => void router.service(GreenhouseService, { waterBed: () => ({ bed: 7n, liters: 3 }) }),
    ...(concurrentStreams !== undefined && { limits: { concurrentStreams } }),
  });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  return { baseUrl: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => gateway.close() };
}

test.each([
  { peer: "grpc-js without a limit of streams", start: () => startGrpcJs(), calls: 20_000 },
  { peer: "grpc-js with 100 streams on a connection", start: () => startGrpcJs(100), calls: 5_000 },
  { peer: "grpc-js with 1 stream on a connection", start: () => startGrpcJs(1), calls: 2_000 },
  { peer: "the engine with its default", start: () => startEngine(), calls: 20_000 },
  { peer: "the engine with 1 stream on a connection", start: () => startEngine(1), calls: 2_000 },
])("$calls concurrent calls to $peer all succeed", { timeout: hangLimitMs }, async ({ start, calls }) => {
  await using peer = await start();
  // A busy machine may need longer for the calls than the default queue timeout.
  await using client = openGreenhouseClient({ addresses: peer.baseUrl, limits: { queueTimeoutMs: hangLimitMs } });
  expect(await outcomesOf(client, calls)).toEqual({ ok: calls });
  expect(client.upstream.load).toMatchObject({ calls: 0, waitingCalls: 0 });
});

interface HeldServer extends AsyncDisposable {
  readonly scripted: ScriptedServer;
  /** Requests that have no response yet, the oldest first. */
  readonly held: { readonly connection: ScriptedConnection; readonly id: number }[];
  respond(): void;
  /** Maximum number of concurrent requests that a connection had. */
  readonly most: number;
}

/** @param streams - its initial MAX_CONCURRENT_STREAMS */
async function startHeld(streams: number): Promise<HeldServer> {
  const held: HeldServer["held"] = [];
  let most = 0;
  const scripted = await startScriptedServer({
    opening: [settingFrame(3, streams)],
    request: (connection, id) => {
      held.push({ connection, id });
      most = Math.max(most, held.filter((each) => each.connection === connection).length);
    },
  });
  return {
    scripted,
    held,
    respond: () => {
      const next = held.shift();
      next?.connection.send(...grpcResponse(next.id, watered));
    },
    get most() {
      return most;
    },
    [Symbol.asyncDispose]: () => scripted[Symbol.asyncDispose](),
  };
}

/** Opens a client that knows, from a first call, how many streams the server allows. */
async function openWithSettings(
  server: HeldServer,
  options: Omit<UpstreamOptions, "addresses">,
): Promise<GreenhouseClient> {
  const client = openGreenhouseClient({ addresses: server.scripted.baseUrl, ...options });
  const first = wateringOf(client);
  await expect.poll(() => server.held.length).toBe(1);
  server.respond();
  expect(await first).toBe("ok");
  return client;
}

const call = (client: GreenhouseClient, count: number): Promise<string>[] =>
  Array.from({ length: count }, () => wateringOf(client));

async function respondToAll(server: HeldServer, calls: readonly Promise<string>[]): Promise<readonly string[]> {
  const outcomes = Promise.all(calls);
  const isDone = outcomes.then(() => true);
  while (!(await Promise.race([isDone, pause(0, false)]))) server.respond();
  return [...new Set(await outcomes)];
}

test("the number of connections at most doubles per round trip", async () => {
  const sockets: Socket[] = [];
  await using server = await startOnLoopback(createServer((socket) => sockets.push(socket.resume())));
  await using client = openGreenhouseClient({ addresses: server.baseUrl, limits: { streamsBeforeSettings: 1 } });
  const calls = call(client, 100);
  for (const connections of [1, 2, 4, 8]) {
    // The server accepts connections later than the client counts them.
    await expect.poll(() => [sockets.length, client.upstream.load.connections]).toEqual([connections, connections]);
    // Sends the first SETTINGS on new connections, and repeats them on the others.
    for (const socket of sockets) socket.write(frameBytes(settingFrame(3, 1)));
    await expect.poll(() => client.upstream.load).toMatchObject({ calls: connections });
  }
  await client.upstream.drain(1);
  await Promise.all(calls);
});

test("a changed stream limit applies immediately", async () => {
  await using server = await startHeld(1);
  await using client = await openWithSettings(server, { connections: 1 });
  const calls = call(client, 20);
  await expect.poll(() => server.held.length).toBe(1);
  const [{ connection } = { connection: undefined }] = server.held;
  connection?.send(settingFrame(3, 10));
  await expect.poll(() => server.held.length).toBe(10);
  connection?.send(settingFrame(3, 2));
  await settingsAcknowledged(server.scripted, 3);
  for (let left = 9; left >= 2; left--) server.respond();
  await expect.poll(() => client.upstream.load).toMatchObject({ calls: 2, waitingCalls: 10 });
  server.respond();
  await expect.poll(() => server.held.length).toBe(2);
  expect(client.upstream.load).toMatchObject({ calls: 2, waitingCalls: 9 });
  connection?.send(settingFrame(3, 0));
  await settingsAcknowledged(server.scripted, 4);
  server.respond();
  server.respond();
  await expect.poll(() => client.upstream.load).toMatchObject({ calls: 0, waitingCalls: 9 });
  connection?.send(settingFrame(3, 100));
  expect(await respondToAll(server, calls)).toEqual(["ok"]);
});

const settingsAcknowledged = async ({ frames }: ScriptedServer, count: number): Promise<void> =>
  await expect
    .poll(() => frames.filter(({ type, flags }) => type === frameType.settings && flags === frameFlag.ack).length)
    .toBe(count);

test("calls are queued while the server allows no streams", async () => {
  await using server = await startHeld(1);
  await using client = await openWithSettings(server, {});
  const calls = call(client, 1);
  await expect.poll(() => server.held.length).toBe(1);
  server.held[0]?.connection.send(settingFrame(3, 0));
  await settingsAcknowledged(server.scripted, 2);
  calls.push(...call(client, 5));
  // Longer than the interval at which queued calls are checked.
  await pause(250);
  expect(client.upstream.load).toMatchObject({ connections: 1, calls: 1, waitingCalls: 5 });
  server.held[0]?.connection.send(settingFrame(3, 10));
  expect([await respondToAll(server, calls), server.scripted.connections]).toEqual([["ok"], 1]);
});

test("queued calls fail after the queue timeout", async () => {
  await using server = await startHeld(1);
  await using client = await openWithSettings(server, { connections: 1, limits: { queueTimeoutMs: 100 } });
  const [first = Promise.resolve("")] = call(client, 1);
  await expect.poll(() => server.held.length).toBe(1);
  const late = call(client, 3);
  const outcome = "ResourceExhausted: the call timed out waiting for a stream to the server";
  expect(await Promise.all(late)).toEqual(late.map(() => outcome));
  const refusals = { queue_full: 0, queue_timeout: 3, unsent_bytes: 0 };
  expect(client.upstream.load).toMatchObject({ calls: 1, waitingCalls: 0, refusals });
  expect(await respondToAll(server, [first])).toEqual(["ok"]);
});

test("the queue timeout does not apply while calls wait for a server", async () => {
  await using server = await startHeld(1);
  const { port } = new URL(server.scripted.baseUrl);
  let isFound = false;
  const upstream = createUpstream({
    addresses: `dns:orders:${port}`,
    connections: 1,
    limits: { queueTimeoutMs: 1_000, streamsBeforeSettings: 1 },
    lookup: () => (isFound ? Promise.resolve([{ address: "127.0.0.1" }]) : Promise.reject(new Error("not yet"))),
  });
  const greenhouse = createClient(GreenhouseService, createGrpcTransport({ baseUrl: upstream, waitForReady: true }));
  const calls = Array.from({ length: 2 }, () => outcomeOf(greenhouse.waterBed({})));
  await pause(1_300);
  expect(upstream.load).toMatchObject({ waitingCalls: 2, refusals: { queue_timeout: 0 } });
  isFound = true;
  await expect.poll(() => server.held.length).toBe(1);
  // The second call has been queued longer than the limit, but not for a stream.
  await pause(300);
  server.respond();
  await expect.poll(() => server.held.length).toBe(1);
  server.respond();
  expect(await Promise.all(calls)).toEqual(["ok", "ok"]);
  await upstream.drain(1);
});

test.each(
  // oxfmt-ignore
  [
    { how: "that is cancelled", code: "Canceled: This operation was aborted", create: () => {
        const controller = new AbortController();
        return { options: { signal: controller.signal }, cancel: (): void => controller.abort() };
      } },
    { how: "whose deadline passes", code: "DeadlineExceeded: the operation timed out",
      create: () => ({ options: { timeoutMs: 100 }, cancel: (): void => undefined }) },
  ],
)("a queued call $how is removed and not sent", async ({ code, create }) => {
  await using server = await startHeld(1);
  await using client = await openWithSettings(server, { connections: 1 });
  const [first = Promise.resolve("")] = call(client, 1);
  await expect.poll(() => server.held.length).toBe(1);
  const { options, cancel } = create();
  const waiting = outcomeOf(client.greenhouse.waterBed({}, options));
  const [behind = Promise.resolve("")] = call(client, 1);
  cancel();
  expect([await waiting, client.upstream.load]).toMatchObject([code, { calls: 1, waitingCalls: 1 }]);
  expect([await respondToAll(server, [first, behind]), server.scripted.requests]).toEqual([["ok"], 3]);
});

test("a server that refuses additional connections keeps its calls", async () => {
  const sockets: Socket[] = [];
  await using held = await startHeld(1);
  let accepts = 1;
  const { port } = new URL(held.scripted.baseUrl);
  // A load balancer that accepts a limited number of connections.
  await using balancer = await startOnLoopback(
    createServer((socket) => {
      if (accepts-- <= 0) return void socket.destroy();
      sockets.push(socket);
      const server = connect(Number(port), "127.0.0.1");
      socket.pipe(server).pipe(socket);
      socket.on("error", () => server.destroy()).on("close", () => server.destroy());
      server.on("error", () => socket.destroy());
    }),
  );
  await using client = openGreenhouseClient({ addresses: balancer.baseUrl });
  const first = wateringOf(client);
  await expect.poll(() => held.held.length).toBe(1);
  held.respond();
  await first;
  const calls = call(client, 3);
  await expect.poll(() => accepts).toBe(-1);
  // Longer than the check interval, and shorter than the backoff.
  await pause(250);
  expect([accepts, await respondToAll(held, calls)]).toEqual([-1, ["ok"]]);
  accepts = 1;
  sockets[0]?.destroy();
  await expect.poll(() => client.upstream.load.connections).toBe(0);
  const [next = Promise.resolve("")] = call(client, 1);
  expect(await respondToAll(held, [next])).toEqual(["ok"]);
});

test("additional connections are closed after a burst, and the first stays open", async () => {
  await using server = await startHeld(1);
  await using client = await openWithSettings(server, { limits: { additionalIdleTimeoutMs: 50 } });
  let changes = 0;
  client.upstream.watchServers(() => changes++);
  const calls = call(client, 6);
  await expect.poll(() => server.held.length).toBe(6);
  expect([server.scripted.open, await respondToAll(server, calls)]).toEqual([6, ["ok"]]);
  await expect.poll(() => client.upstream.load).toMatchObject({ connections: 1, calls: 0 });
  await expect.poll(() => server.scripted.open).toBe(1);
  expect([await respondToAll(server, call(client, 1)), server.scripted.connections]).toEqual([["ok"], 6]);
  // Watchers are not called, because the server is the same.
  expect(changes).toBe(0);
});
