// The greenhouse on every core. This process listens, and hands over each connection to a worker, which runs the same
// program: npx node protoport/examples/servers/workers.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { createGateway, shareConnections } from "@protoport/gateway";
import { routes } from "./greenhouse.ts";

const [argument = "8080"] = process.argv.slice(2);
if (argument === "worker") await work();
else await share(Number(argument));

async function share(port: number): Promise<void> {
  const shared = await shareConnections({ port });
  const workers = Array.from({ length: availableParallelism() }, () => fork(import.meta.filename, ["worker"]));
  for (const worker of workers) shared.handTo(worker);
  process.once("SIGTERM", () => {
    for (const worker of workers) if (worker.connected) worker.send("drain");
    void shared.drain();
  });
  console.log(`http://${shared.address}:${String(shared.port)}`);
}

async function work(): Promise<void> {
  const gateway = createGateway({ routes });
  const listening = gateway.listen({ handedOver: true });
  const drain = async (): Promise<void> => {
    await listening;
    await gateway.drain(10_000);
    if (process.connected) process.disconnect?.();
  };
  // Registered now, because the message may arrive before the gateway listens.
  process.on("message", (message) => message === "drain" && void drain());
  // The listening process has exited.
  process.once("disconnect", () => void drain());
  await listening;
}
