import { Code, ConnectError, createClient, type Client } from "@connectrpc/connect";
import { compressionGzip, createGrpcTransport } from "@connectrpc/connect-node";
import { test, vi } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { HealthCheckResponse_ServingStatus as Status } from "../../../../src/protobuf/gen/grpc/health/v1/health_pb.ts";
// oxfmt-ignore
import { createHealthService, Health, maxHealthRequestBytes, Readiness, type ServerPart
} from "../../../../src/health/index.ts";
import { createGateway } from "../../../../src/index.ts";
// oxfmt-ignore
import { type Address, dataFrame, type Field, type FrameConnection, frameFlag, frameType, headersFrame, openFrames,
  within } from "@protoport/testing";
import { countRefTimers } from "../../../../../testing/src/ref-timers.ts";

interface Served {
  readonly health: Client<typeof Health>;
  readonly address: Address;
  readonly drain: () => Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

async function serve(tank: ServerPart = {}): Promise<Served> {
  const readiness = new Readiness({ tank });
  const health = createHealthService({ readiness, services: [GreenhouseService.typeName] });
  const gateway = createGateway({
    routes: (router) => {
      router.service(GreenhouseService, {});
      router.service(Health, health, { readMaxBytes: maxHealthRequestBytes });
    },
  });
  const { address, port } = await gateway.listen({ host: "127.0.0.1" });
  const transport = createGrpcTransport({ baseUrl: `http://${address}:${port}` });
  return {
    health: createClient(Health, transport),
    address: { address, port },
    drain: async () => (readiness.startDraining(), await gateway.drain(5_000)),
    [Symbol.asyncDispose]: () => gateway.close(),
  };
}

/** Opens a connection with this many watchers, and returns once each has received a status. */
async function watchOn(address: Address, watchers: number): Promise<FrameConnection> {
  const connection = await openFrames(address);
  const pseudo = { ":method": "POST", ":scheme": "http", ":path": "/grpc.health.v1.Health/Watch", ":authority": "x" };
  const header: Field[] = Object.entries({ ...pseudo, "content-type": "application/grpc", te: "trailers" });
  const emptyMessage = Buffer.alloc(5);
  const streamIds = Array.from({ length: watchers }, (_, index) => 2 * index + 1);
  const requests = streamIds.map((id) => [headersFrame(id, header), dataFrame(id, emptyMessage, frameFlag.endStream)]);
  connection.send(...requests.flat());
  let statuses = 0;
  const responded = connection.readUntil(({ type }) => type === frameType.data && ++statuses === watchers);
  await within(responded, "the first responses");
  return connection;
}

/** Watches until the first response, and returns its status, or the error's code. */
async function firstStatusOf(
  { health }: Pick<Served, "health">,
  request: { readonly service?: string } = {},
): Promise<Status | Code | undefined> {
  const controller = new AbortController();
  try {
    for await (const { status } of health.watch(request, { signal: controller.signal })) return status;
    return undefined;
  } catch (reason) {
    return ConnectError.from(reason).code;
  } finally {
    controller.abort();
  }
}

test.for(["", "greenhouse.v1.GreenhouseService"])(
  "check() returns SERVING for the service %j of a healthy server",
  async (service, { expect }) => {
    await using served = await serve();
    expect(await served.health.check({ service })).toMatchObject({ status: Status.SERVING });
  },
);

test("check() returns NOT_SERVING while a part of the server has a problem", async ({ expect }) => {
  await using served = await serve({ problem: "it is dry" });
  expect(await served.health.check({ service: "" })).toMatchObject({ status: Status.NOT_SERVING });
});

test("check() of an unknown service fails with NOT_FOUND", async ({ expect }) => {
  await using served = await serve();
  const error = await served.health.check({ service: "garden.v1.Gnome" }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: Code.NotFound, rawMessage: "the server does not have this service" });
});

test.for([
  { coding: "uncompressed", compressed: {} },
  { coding: "gzip-compressed", compressed: { sendCompression: compressionGzip, compressMinBytes: 0 } },
])("the health service accepts $coding requests of at most 512 bytes", async ({ compressed }, { expect }) => {
  await using served = await serve();
  const baseUrl = `http://${served.address.address}:${String(served.address.port)}`;
  const health = createClient(Health, createGrpcTransport({ baseUrl, ...compressed }));
  // The field has a 3-byte prefix.
  const tooLarge = { service: "x".repeat(510) };
  const largest = { service: "x".repeat(509) };
  expect(await codeOf(health.check(largest))).toBe(Code.NotFound);
  expect(await codeOf(health.check(tooLarge))).toBe(Code.ResourceExhausted);
  expect(await firstStatusOf({ health }, largest)).toBe(Status.SERVICE_UNKNOWN);
  expect(await firstStatusOf({ health }, tooLarge)).toBe(Code.ResourceExhausted);
});

async function codeOf(call: Promise<unknown>): Promise<Code | undefined> {
  const error = await call.catch((reason: unknown) => reason);
  return error instanceof ConnectError ? error.code : undefined;
}

test.for([
  { watched: "the whole server", service: "", first: Status.SERVING },
  { watched: "an unknown service", service: "garden.v1.Gnome", first: Status.SERVICE_UNKNOWN },
])(
  "a watcher of $watched gets the status immediately and during the drain",
  async ({ service, first }, { expect, onTestFinished }) => {
    // Timers are faked, so that the next periodic check cannot send the status.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    await using served = await serve();
    const statuses: number[] = [];
    let end: unknown;
    try {
      for await (const { status } of served.health.watch({ service })) {
        statuses.push(status);
        if (statuses.length === 1) void served.drain();
      }
    } catch (reason) {
      end = reason;
    }
    expect(statuses).toEqual([first, Status.NOT_SERVING]);
    expect(end instanceof ConnectError && end.code).toBe(Code.Unavailable);
  },
);

test.concurrent("a watcher gets a status for each change and no duplicates", async ({ expect }) => {
  let problem: string | undefined;
  await using served = await serve({
    get problem() {
      return problem;
    },
  });
  const statuses: Status[] = [];
  // The second watcher is also the only one, because the first has disconnected.
  for (const count of [3, 6]) {
    const controller = new AbortController();
    for await (const { status } of served.health.watch({}, { signal: controller.signal })) {
      statuses.push(status);
      if (statuses.length === count) break;
      problem = problem === undefined ? "it is dry" : undefined;
    }
    controller.abort();
    await served.health.check({});
  }
  const expected = [Status.SERVING, Status.NOT_SERVING, Status.SERVING];
  expect(statuses).toEqual([...expected, ...expected]);
});

test.concurrent("1,000 watchers across connections share one timer", async ({ expect }) => {
  await using served = await serve();
  const timersBefore = countRefTimers();
  const connections = await Promise.all([200, 200, 200, 200, 199].map((count) => watchOn(served.address, count)));
  expect(await firstStatusOf(served)).toBe(Status.SERVING);
  using last = await watchOn(served.address, 1);
  expect(countRefTimers() - timersBefore).toBeLessThan(100);
  expect(await firstStatusOf(served)).toBe(Code.ResourceExhausted);
  last.socket.resetAndDestroy();
  await expect.poll(() => firstStatusOf(served)).toBe(Status.SERVING);
  for (const connection of connections) connection.socket.resetAndDestroy();
});
