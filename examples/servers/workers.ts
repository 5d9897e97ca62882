// The greenhouse on every core. This process listens, and hands each connection to one of its workers, which are this
// program too: npx node examples/servers/workers.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { createGateway, shareConnections } from "@plantstore/gateway";
import { routes } from "./greenhouse.ts";

const [what = "8080"] = process.argv.slice(2);
if (what === "worker") await work();
else await share(Number(what));

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
  // Now, because the order may come before it listens.
  process.on("message", (message) => message === "drain" && void drain());
  // Without the process that listens there is nothing to wait for.
  process.once("disconnect", () => void drain());
  await listening;
}
