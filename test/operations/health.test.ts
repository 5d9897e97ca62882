import { Code, ConnectError, createClient, type Client } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../src/gen/es/grpc/health/v1/health_pb.ts";
import { openMemoryStore, type PlantStore } from "../../src/plants/index.ts";
import { createPlantServer } from "../../src/server/index.ts";
import { testVerifier } from "../support/plant-server.ts";

interface Served {
  readonly health: Client<typeof Health>;
  readonly drain: () => Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A whole plant server, asked without a credential. */
async function serve(store: PlantStore = openMemoryStore()): Promise<Served> {
  const server = createPlantServer({ store, auth: testVerifier, drainTimeoutMs: 5_000 });
  const { address, port } = await server.listen({ host: "127.0.0.1" });
  const transport = createGrpcTransport({ baseUrl: `http://${address}:${port}` });
  return {
    health: createClient(Health, transport),
    drain: () => server.drain(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

function storeWith(problem: string): PlantStore {
  return { delete: () => Promise.resolve(false), problem, close: () => Promise.resolve() };
}

test.each(["", "plantstore.v1.PlantService"])("a healthy server serves %j", async (service) => {
  await using served = await serve();
  expect(await served.health.check({ service })).toMatchObject({ status: Status.SERVING });
});

test("a server whose store is away does not serve", async () => {
  await using served = await serve(storeWith("disk full"));
  expect(await served.health.check({ service: "" })).toMatchObject({ status: Status.NOT_SERVING });
});

test("an unknown service is NOT_FOUND to a check", async () => {
  await using served = await serve();
  const error = await served.health.check({ service: "garden.v1.Gnome" }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: Code.NotFound, rawMessage: "the service is not known here" });
});

test.each([
  { service: "", first: Status.SERVING },
  { service: "garden.v1.Gnome", first: Status.SERVICE_UNKNOWN },
])(
  "a watcher of $service is told at once, then of the drain, and its stream does not hold up the drain",
  async ({ service, first }) => {
    await using served = await serve();
    const told: number[] = [];
    let end: unknown;
    try {
      for await (const { status } of served.health.watch({ service })) {
        told.push(status);
        if (told.length === 1) void served.drain();
      }
    } catch (reason) {
      end = reason;
    }
    expect(told).toEqual([first, Status.NOT_SERVING]);
    expect(end instanceof ConnectError && end.code).toBe(Code.Unavailable);
  },
);
