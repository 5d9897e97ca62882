import { pathToFileURL } from "node:url";
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { benchToken, createBenchPlants } from "./plants.ts";
import { serve } from "./serve.ts";

// The whole plant server as it runs in production, but for its store: every protocol on the one port,
// credentials checked, interceptors on, errors made safe, health probes there. Calls are not logged.

/** The checkout whose server is run: this one, or the one that it is compared with. */
const tree = process.env["PLANTSTORE_TREE"] ?? join(import.meta.dirname, "../..");

/** The package as it is built, where that is what is measured. */
const built = process.env["PLANTSTORE_DIST"];

// What the command line does first: compiled code is kept from start to start.
enableCompileCache();

const { createPlantServer }: typeof import("../../src/server/index.ts") = await load("server/index");
const { openTokenVerifier, toStaticToken }: typeof import("../../src/auth/index.ts") = await load("auth/index");

const plants = createBenchPlants();
const verifier = await openTokenVerifier(
  { tokens: [toStaticToken("bench", benchToken)] },
  { info: () => {}, warn: () => {} },
);
if (verifier.kind !== "value") throw new Error(verifier.problems.join("; "));
const server = createPlantServer({
  auth: verifier.value,
  store: {
    delete: (id) => Promise.resolve(plants.delete(id)),
    problem: undefined,
    close: () => Promise.resolve(),
  },
});
const http2 = process.env["HTTP2_ENGINE"] === "node" ? "node" : "own";
await serve(() => server.listen({ host: "127.0.0.1", port: 0, http2 }));

async function load<Module>(path: string): Promise<Module> {
  const file = built === undefined ? join(tree, "src", `${path}.ts`) : join(built, `${path}.js`);
  return await import(pathToFileURL(file).href);
}
