import { credentials } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { createGateway } from "../../packages/gateway/src/index.ts";
import { createPlantClient, type PlantClient } from "../../src/client/index.ts";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";

/** The client method for each RPC. An RPC without one does not compile. */
const calls: Readonly<Record<keyof typeof PlantService.method, (plants: PlantClient) => Promise<unknown>>> = {
  deletePlant: (plants) => plants.delete(42n),
};

test.each(Object.entries(calls))("the client has a method that calls %s", async (localName, call) => {
  const called: string[] = [];
  const handlers = PlantService.methods.map((method) => [
    method.localName,
    () => {
      called.push(method.localName);
      return {};
    },
  ]);
  const gateway = createGateway({
    routes: (router) => void router.service(PlantService, Object.fromEntries(handlers)),
  });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  const plants = createPlantClient({
    address: `127.0.0.1:${String(port)}`,
    token: "token",
    credentials: credentials.createInsecure(),
  });
  await call(plants);
  plants.close();
  await gateway.close();
  expect(called).toEqual([localName]);
});
