import { Code, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { HealthCheckResponse_ServingStatus as Status } from "@protoport/gateway/gen/grpc/health/v1/health_pb.js";
import { Health } from "@protoport/gateway/health";
import { ServerReflection } from "@protoport/gateway/reflection";
import { fakeStore } from "../support/plants/fake-store.ts";
import { startPlantServer, type TestPlantServer, tokens } from "../support/server/plant-server.ts";

const transportTo = ({ address: { address, port } }: TestPlantServer): Transport =>
  createGrpcTransport({ baseUrl: `http://${address}:${String(port)}` });

async function* listServices() {
  yield { messageRequest: { case: "listServices", value: "*" } } as const;
}

async function servicesListed(server: TestPlantServer, token: string): Promise<readonly string[]> {
  const client = createClient(ServerReflection, transportTo(server));
  const headers = { authorization: `Bearer ${token}` };
  const names: string[] = [];
  for await (const { messageResponse: response } of client.serverReflectionInfo(listServices(), { headers })) {
    if (response.case === "listServicesResponse") names.push(...response.value.service.map(({ name }) => name));
  }
  return names;
}

test.each([
  ["SERVING for the server", {}, "", Status.SERVING],
  ["SERVING for PlantService", {}, "plantstore.v1.PlantService", Status.SERVING],
  ["NOT_SERVING while the store is unavailable", { problem: "disk full" }, "", Status.NOT_SERVING],
])("a health check gets %s and needs no credential", async (_name, store, service, want) => {
  await using server = await startPlantServer({ store: fakeStore(store) });
  const { status } = await createClient(Health, transportTo(server)).check({ service });
  expect(status).toBe(want);
});

test.each([
  ["the store is unavailable", { problem: "the disk is full" }, ["store"]],
  ["the store checks its file", { problem: "it is checked", isChecking: true }, ["store-check"]],
])("while %s, /readyz responds 503 with the reason", async (_name, store, obstacles) => {
  await using server = await startPlantServer({ store: fakeStore(store) });
  const { address, port } = server.address;
  const response = await fetch(`http://${address}:${port}/readyz`);
  expect(response.status).toBe(503);
  expect(await response.json()).toEqual({ status: "not ready", obstacles });
});

test("reflection lists the services", async () => {
  await using server = await startPlantServer();
  expect(await servicesListed(server, tokens.good)).toEqual([
    "plantstore.v1.PlantService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
  ]);
});

test("reflection requires a credential", async () => {
  await using server = await startPlantServer();
  const error = await servicesListed(server, tokens.unknown).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: Code.Unauthenticated });
});
