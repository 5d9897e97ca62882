import { openTokenVerifier, toStaticToken } from "@protoport/auth";
import { createPlantServer } from "../../src/server/index.ts";
import { benchToken } from "../servers/plants.ts";
import { isStoreName, type StoreLocation, stores } from "./stores.ts";

/** A message to the parent process. The message has the port, or the CPU time in the main thread and in all threads. */
export type ServerMessage =
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "usage"; readonly mainUs: number; readonly allUs: number };

const [name = "", location = "{}"] = process.argv.slice(2);
if (!isStoreName(name)) throw new Error(`unknown store "${name}"`);
const where: StoreLocation = JSON.parse(location);

const verifier = await openTokenVerifier(
  { tokens: [toStaticToken("bench", benchToken)] },
  { info: () => {}, warn: () => {} },
);
if (verifier.kind !== "value") throw new Error(verifier.problems.join("; "));
const server = createPlantServer({ verifier: verifier.value, store: await stores[name](where) });
const { port } = await server.listen({ host: "127.0.0.1", port: 0 });

process.on("message", () =>
  sendToParent({ kind: "usage", mainUs: sum(process.threadCpuUsage()), allUs: sum(process.cpuUsage()) }),
);
process.on("disconnect", () => process.exit(0));
sendToParent({ kind: "listening", port });

function sum({ user, system }: { readonly user: number; readonly system: number }): number {
  return user + system;
}

function sendToParent(message: ServerMessage): void {
  process.send?.(message);
}
