// A greenhouse in a worker of node:cluster. The sensors return this process's id. After "drain", the worker exits.
import cluster from "node:cluster";
import { setTimeout } from "node:timers/promises";
import type { ListenOptions } from "../../../gateway/src/index.ts";
import { createTestGateway } from "./test-gateway.ts";
import { type GetReadingRequest, GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";

const options: ListenOptions = JSON.parse(process.env["LISTEN_OPTIONS"] ?? "{}");
const gateway = createTestGateway({
  routes: (router) => router.service(GreenhouseService, { getReading }),
  trustedProxies: { addresses: ["unix:"] },
});

// The response for the sensor "late" is sent some time after the client has closed its side.
async function getReading({ sensor }: GetReadingRequest): Promise<{ sensor: string }> {
  if (sensor === "late") await setTimeout(100);
  return { sensor: String(process.pid) };
}

process.on("message", (message) => message === "drain" && void drain());
const { address, port } = await gateway.listen(options);
process.send?.({ address, port });

async function drain(): Promise<void> {
  await gateway.drain(10_000);
  cluster.worker?.disconnect();
}
