// The greenhouse on every core. This process listens, and passes each connection to the next worker, which runs the same
// program: npx node protoport/examples/servers/workers.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import cluster from "node:cluster";
import { availableParallelism } from "node:os";
import { createGateway } from "@protoport/gateway";
import { routes } from "./greenhouse.ts";

const [port = "8080"] = process.argv.slice(2);
if (cluster.isPrimary) start();
else await work();

function start(): void {
  const workers = Array.from({ length: availableParallelism() }, () => cluster.fork());
  let starting = workers.length;
  cluster.on("listening", (_worker, at) => {
    starting -= 1;
    if (starting === 0) console.log(`http://${at.address}:${String(at.port)}`);
  });
  process.once("SIGTERM", () => {
    for (const worker of workers) if (worker.isConnected()) worker.send("drain");
  });
}

async function work(): Promise<void> {
  const gateway = createGateway({ routes });
  const listening = gateway.listen({ port: Number(port) });
  const drain = async (): Promise<void> => {
    await listening;
    await gateway.drain(10_000);
    cluster.worker?.disconnect();
  };
  // Registered now, because the message may arrive before the gateway listens.
  process.on("message", (message) => message === "drain" && void drain());
  await listening;
}
