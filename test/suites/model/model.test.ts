import { asyncModelRun, asyncProperty, assert } from "fast-check";
import { afterAll, test } from "vitest";
import { testSeed } from "../../../packages/testing/src/test-seed.ts";
import { startPostgres } from "../../support/plants/postgres-server.ts";
import { plants, storeCommands } from "./commands.ts";
import { createPostgres, createSqlite } from "./databases.ts";
import { PlantModel } from "./plant-model.ts";
import { StoreHost } from "./store-host.ts";

/** The number of sequences for each store. Fewer if they take longer than the limit of a property. */
const sequences = 20;

/** Timeout of one sequence, in milliseconds: twenty restarts on a busy machine. */
const sequenceLimitMs = 120_000;

const server = await startPostgres();
afterAll(() => server[Symbol.asyncDispose]());

test.each([
  { name: "SQLite", create: createSqlite },
  { name: "PostgreSQL", create: () => createPostgres(server) },
])(
  `a store on $name keeps its promises despite crashes (TEST_SEED=${testSeed})`,
  { timeout: 2 * sequenceLimitMs },
  async ({ name, create }) => {
    let count = 0;
    await assert(
      asyncProperty(storeCommands, async (commands) => {
        await using database = await create();
        const host = new StoreHost(database);
        await host.start();
        try {
          await host.import(plants, false);
          await asyncModelRun(() => ({ model: new PlantModel(plants), real: host }), commands);
        } finally {
          await host.kill();
        }
        count += [...commands].length;
      }),
      { seed: testSeed, numRuns: sequences, timeout: sequenceLimitMs, endOnFailure: true },
    );
    console.log(`${name}: ${count} commands, TEST_SEED=${testSeed}`);
  },
);
