import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createReflectionService, ServerReflection } from "../../gateway/src/reflection/index.ts";
import { createProxy } from "../src/create-proxy.ts";
import { descriptorSetOf } from "../../testing/src/gateway/descriptor-set.ts";
import { respondWatered } from "../../testing/src/gateway/greenhouse-client.ts";
import { startScriptedServer } from "../../testing/src/gateway/scripted-http2-server.ts";
import { createTestGateway } from "../../testing/src/gateway/test-engine.ts";
import { exchangeFetch } from "../../testing/src/http/fetch.ts";

// Which connections reconfigure closes.

const descriptors = descriptorSetOf(GreenhouseService.file);

test("reconfigure closes the connections to replaced upstreams", async () => {
  await using old = await startScriptedServer(respondWatered);
  const proxy = await createProxy({ upstreams: [{ upstream: old.baseUrl, descriptors }] });
  const header = [["content-type", "application/json"]] as const;
  const request = { httpMethod: "POST", path: "/beds/7:water", header, body: Buffer.from("{}") };
  expect((await exchangeFetch(proxy.fetch, request)).httpStatus).toBe(200);
  expect(old.open).toBe(1);
  await proxy.reconfigure({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }] });
  await expect.poll(() => old.open).toBe(0);
  await proxy.close();
});

test("reconfigure closes the new connections if accept refuses the options", async () => {
  const reflected = createTestGateway({
    routes: (router) => {
      router.service(GreenhouseService, {});
      router.service(ServerReflection, createReflectionService([GreenhouseService]));
    },
  });
  const { port } = await reflected.listen({ host: "127.0.0.1" });
  const proxy = await createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }] });
  const next = { upstreams: [{ upstream: `http://127.0.0.1:${port}`, descriptors: "reflection" as const }] };
  const connections: number[] = [];
  const accept = (): void => {
    connections.push(reflected.load.connections.http2);
    throw new RangeError("refused");
  };
  await expect(proxy.reconfigure(next, accept)).rejects.toThrow("refused");
  await expect.poll(() => reflected.load.connections.http2).toBe(0);
  expect(connections).toEqual([1]);
  await proxy.close();
  await reflected.close();
});
