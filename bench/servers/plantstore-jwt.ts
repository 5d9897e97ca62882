import { openTokenVerifier, toStaticToken } from "../../src/auth/index.ts";
import { createPlantServer } from "../../src/server/index.ts";
import { benchAudience, benchIssuer } from "../auth-tokens.ts";
import { benchToken, createBenchPlants } from "./plants.ts";
import { serve } from "./serve.ts";

// The plant server that takes the bench's static token and the tokens of the bench's issuer, whose keys are in a file.

const file = process.env["BENCH_KEYS_FILE"];
if (file === undefined) throw new Error("BENCH_KEYS_FILE is not set");
const plants = createBenchPlants();
const verifier = await openTokenVerifier(
  {
    tokens: [toStaticToken("bench", benchToken)],
    jwt: [{ issuer: benchIssuer, audiences: [benchAudience], keys: { file }, demandScopes: true }],
  },
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
await serve(() => server.listen({ host: "127.0.0.1", port: 0 }));
