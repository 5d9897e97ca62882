import { openTokenVerifier, toStaticToken } from "@protoport/auth";
import { createPlantServer } from "../../src/server/index.ts";
import { benchToken } from "../servers/plants.ts";
import { isStoreName, type StoreLocation, stores } from "./stores.ts";

/** A message to the parent process. The message has the port, or the CPU time in the main thread. */
export type ServerMessage =
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "usage"; readonly mainUs: number };

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

process.on("message", () => {
  const { user, system } = process.threadCpuUsage();
  sendToParent({ kind: "usage", mainUs: user + system });
});
process.on("disconnect", () => process.exit(0));
sendToParent({ kind: "listening", port });

function sendToParent(message: ServerMessage): void {
  process.send?.(message);
}
