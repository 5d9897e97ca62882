import { openTokenVerifier, toStaticToken } from "@protoport/auth";
import { createPlantServer } from "../../src/server/index.ts";
import { benchAudience, benchIssuer } from "../auth-tokens.ts";
import { benchToken, createBenchPlants } from "./plants.ts";
import { serve } from "../../protoport/bench/servers/serve.ts";
import { fakeStore } from "../../test/support/plants/fake-store.ts";

// The plant store, which accepts the bench's static token, a static token with a JWT's length, and JWTs from the
// bench's issuer. The issuer's keys are in a file.

const { BENCH_KEYS_FILE: file, BENCH_LONG_TOKEN: longToken } = process.env;
if (file === undefined || longToken === undefined) throw new Error("BENCH_KEYS_FILE or BENCH_LONG_TOKEN is not set");
const plants = createBenchPlants();
const verifier = await openTokenVerifier(
  {
    tokens: [toStaticToken("bench", benchToken), toStaticToken("long", longToken)],
    jwt: [{ issuer: benchIssuer, audiences: [benchAudience], keysFile: file, enforceScopes: true }],
  },
  { info: () => {}, warn: () => {} },
);
if (verifier.kind !== "value") throw new Error(verifier.problems.join("; "));
const server = createPlantServer({
  verifier: verifier.value,
  store: fakeStore({ delete: (id) => Promise.resolve(plants.delete(id)) }),
});
await serve(() => server.listen({ host: "127.0.0.1", port: 0 }));
