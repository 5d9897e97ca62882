// A greenhouse on connections that its parent process hands over. The sensors return this process's id. The parent may
// send four messages. The response to "ping" is "pong". "drain" drains the server. "drain at the next" drains the
// server when a connection has arrived and is not accepted yet. "fill at the next" fills the channel to the parent when
// a connection has arrived.
import { setTimeout } from "node:timers/promises";
import type { ListenOptions } from "../../../gateway/src/index.ts";
import { createTestGateway } from "./test-engine.ts";
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

/** Number of bytes that is more than a channel buffers. */
const fillingBytes = 4_000_000;

let atNext: (() => void) | undefined;
// This listener is called before the gateway's own listener, because it is added earlier.
process.on("message", (message: unknown) => {
  if (message === "ping") process.send?.("pong");
  if (message === "drain") void drain();
  if (message === "drain at the next") atNext = () => void drain();
  if (message === "fill at the next") atNext = () => void process.send?.("x".repeat(fillingBytes));
  if (typeof message !== "object" || message === null || !("connection" in message)) return;
  atNext?.();
  atNext = undefined;
});
const refusedOptions: ListenOptions | undefined =
  JSON.parse(process.env["REFUSED_LISTEN_OPTIONS"] ?? "null") ?? undefined;
if (refusedOptions !== undefined) await gateway.listen({ ...refusedOptions, handedOver: true }).catch(() => undefined);
await gateway.listen({ ...options, handedOver: true });
process.send?.("listening");

async function drain(): Promise<void> {
  await gateway.drain(10_000);
  process.disconnect?.();
}
