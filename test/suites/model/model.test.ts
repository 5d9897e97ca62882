import { afterAll, test } from "vitest";
import { testSeed } from "@protoport/testing/process";
import { checkStore } from "../../support/model/check-store.ts";
import { createPostgres, createSqlite } from "../../support/model/databases.ts";
import { startInProcess as startStore } from "../../support/model/start-process.ts";
import { startPostgres } from "../../support/plants/postgres-server.ts";

const sequences = 20;
/** A sequence's timeout in milliseconds, enough for twenty restarts on a busy machine. */
const limitMs = 120_000;

const server = await startPostgres();
afterAll(() => server[Symbol.asyncDispose]());

test.each([
  { name: "SQLite", create: createSqlite },
  { name: "PostgreSQL", create: () => createPostgres(server) },
])(
  `a store on $name keeps its promises despite crashes (TEST_SEED=${testSeed})`,
  { timeout: 2 * limitMs },
  async ({ name, create }) => {
    const count = await checkStore({ create, startStore, sequences, limitMs });
    console.log(`${name}: ${count} commands, TEST_SEED=${testSeed}`);
  },
);
