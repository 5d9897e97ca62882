import { openTokenVerifier, toStaticToken } from "@protoport/auth";
import { createWriteStream } from "node:fs";
import { openLog } from "@protoport/telemetry/logs";
import { openSqliteStore } from "../../src/stores/index.ts";
import { createPlantServer } from "../../src/server/index.ts";
import { fakeStore } from "../../test/support/plants/fake-store.ts";
import { createTempFolder } from "../../protoport/testing/src/process/temp-folder.ts";
import { benchToken, callsPerMiss } from "./plants.ts";
import { serve } from "../../protoport/bench/servers/serve.ts";

// The plant store on an SQLite file. Each call is a durable deletion with its record. A plant can be deleted only once,
// so a call deletes the next existing plant instead of the requested plant. With `LOG=on`, calls are logged.

/** Number of plants, which is more than a round deletes in 20 one-second turns at 100,000 deletions per second. */
const plantCount = 2_000_000n;

const folder = createTempFolder();
process.on("exit", () => folder[Symbol.dispose]());

const store = await openSqliteStore({
  file: folder.file("plants.db"),
  plantsWhenCreated: { first: 1n, last: plantCount },
});
const verifier = await openTokenVerifier(
  { tokens: [toStaticToken("bench", benchToken)] },
  { info: () => {}, warn: () => {} },
);
if (verifier.kind !== "value") throw new Error(verifier.problems.join("; "));

/** An id without a plant. As on all bench servers, one in {@link callsPerMiss} calls does not find a plant. */
const absent = 0n;
let calls = 0n;

const server = createPlantServer({
  // Each call is a log line, as in production. The lines are written to a file instead of stderr.
  ...(process.env["LOG"] === "on" && { log: openLog("info", createWriteStream(folder.file("log.jsonl"))) }),
  verifier: verifier.value,
  store: fakeStore({
    delete: (_, call) => {
      calls += 1n;
      if (calls > plantCount) {
        console.error(`all ${plantCount} plants are deleted: increase plantCount in plantstore-sqlite.ts`);
        process.exit(1);
      }
      return store.delete(calls % BigInt(callsPerMiss) === 0n ? absent : calls, call);
    },
  }),
});
await serve(() => server.listen({ host: "127.0.0.1", port: 0 }));
