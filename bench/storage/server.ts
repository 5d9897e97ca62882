import { openTokenVerifier, toStaticToken } from "../../packages/auth/src/index.ts";
import { createPlantServer } from "../../src/server/index.ts";
import { benchToken } from "../servers/plants.ts";
import { isStoreName, type Place, stores } from "./stores.ts";

/** What this program tells its parent: where it listens, and what its main thread and all its threads have used. */
export type Said =
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "usage"; readonly mainUs: number; readonly allUs: number };

const [name = "", place = "{}"] = process.argv.slice(2);
if (!isStoreName(name)) throw new Error(`there is no store ${name}`);
const where: Place = JSON.parse(place);

const verifier = await openTokenVerifier(
  { tokens: [toStaticToken("bench", benchToken)] },
  { info: () => {}, warn: () => {} },
);
if (verifier.kind !== "value") throw new Error(verifier.problems.join("; "));
const server = createPlantServer({ auth: verifier.value, store: await stores[name](where) });
const { port } = await server.listen({ host: "127.0.0.1", port: 0 });

process.on("message", () =>
  say({ kind: "usage", mainUs: sum(process.threadCpuUsage()), allUs: sum(process.cpuUsage()) }),
);
process.on("disconnect", () => process.exit(0));
say({ kind: "listening", port });

function sum({ user, system }: { readonly user: number; readonly system: number }): number {
  return user + system;
}

function say(said: Said): void {
  process.send?.(said);
}
