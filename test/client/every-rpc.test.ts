import { Code, ConnectError } from "@connectrpc/connect";
import { credentials } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { createGateway } from "@protoport/gateway";
import { createPlantClient, type PlantClient } from "../../src/client/index.ts";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { policyOf } from "../../src/service/rpc-policy.ts";

/** The client method for each RPC. An RPC without one does not compile. */
const calls: Readonly<Record<keyof typeof PlantService.method, (plants: PlantClient) => Promise<unknown>>> = {
  deletePlant: (plants) => plants.delete(42n),
};

/** Calls an RPC on a server whose handlers may throw an error. Returns each attempt's procedure, and the error. */
async function attemptsOf(call: (plants: PlantClient) => Promise<unknown>, error?: ConnectError) {
  const attempts: string[] = [];
  const handlers = PlantService.methods.map(({ name, localName }) => [
    localName,
    () => {
      attempts.push(name);
      if (error !== undefined) throw error;
      return {};
    },
  ]);
  const implementation = Object.fromEntries(handlers);
  const gateway = createGateway({ routes: (router) => void router.service(PlantService, implementation) });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  const plants = createPlantClient({
    address: `127.0.0.1:${String(port)}`,
    token: "token",
    credentials: credentials.createInsecure(),
  });
  const outcome = await call(plants).catch((reason: unknown) => reason);
  plants.close();
  await gateway.close();
  return { attempts, message: outcome instanceof Error ? outcome.message : undefined };
}

const rpcs = Object.entries(calls).map(([localName, call]) => {
  const rpc = PlantService.methods.find((method) => method.localName === localName)?.name ?? "";
  const policy = policyOf(`/${PlantService.typeName}/${rpc}`);
  if (policy === undefined) throw new Error(`${localName} has no policy`);
  return { rpc, call, ...policy };
});

test.each(rpcs)("the client's method $rpc calls its RPC", async ({ rpc, call }) => {
  expect(await attemptsOf(call)).toEqual({ attempts: [rpc], message: undefined });
});

test.each(rpcs)("the client sends $rpc four times to an unavailable server", async ({ rpc, call, effect }) => {
  const error = new ConnectError("down", Code.Unavailable, { "grpc-retry-pushback-ms": "1" });
  const { attempts, message } = await attemptsOf(call, error);
  expect(attempts).toEqual([rpc, rpc, rpc, rpc]);
  const outcome =
    effect === "deletion"
      ? "the plant may have been deleted, and without the same idempotency key a repeated call may return not-found"
      : "you can repeat the call safely";
  expect(message).toBe(`UNAVAILABLE: down; check the address, and whether the server uses TLS; ${outcome}`);
});
