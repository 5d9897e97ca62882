import { pathToFileURL } from "node:url";
import { join } from "node:path";
import type { Parsed } from "../../src/auth/index.ts";
import { benchToken, createBenchPlants } from "./plants.ts";
import { serve } from "./serve.ts";

// The whole plant server as it runs in production, but for its store: every protocol on the one port,
// credentials checked, interceptors on, errors made safe, health probes there. Calls are not logged.

/** The checkout whose server is run: this one, or the one that it is compared with. */
const tree = process.env["PLANTSTORE_TREE"] ?? join(import.meta.dirname, "../..");

/** The package as it is built, where that is what is measured. */
const built = process.env["PLANTSTORE_DIST"];

const { createPlantServer, openTokenVerifier, parsePlainTokens } = await load();

const noLog = { info: (): void => {}, warn: (): void => {} };
const plants = createBenchPlants();
const server = createPlantServer({
  auth: valueOf(await openTokenVerifier({ tokens: valueOf(parsePlainTokens(benchToken)) }, noLog)),
  store: {
    delete: (id) => Promise.resolve(plants.delete(id)),
    problem: undefined,
    close: () => Promise.resolve(),
  },
});
const http2 = process.env["HTTP2_ENGINE"] === "node" ? "node" : "own";
await serve(() => server.listen({ host: "127.0.0.1", port: 0, http2 }));

async function load(): Promise<typeof import("../../src/index.ts")> {
  const file = built === undefined ? join(tree, "src/index.ts") : join(built, "index.js");
  return await import(pathToFileURL(file).href);
}

function valueOf<T>(parsed: Parsed<T>): T {
  if (parsed.kind === "problems") throw new Error(parsed.problems.join("; "));
  return parsed.value;
}
