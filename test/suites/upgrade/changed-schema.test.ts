import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PostgresServer, runSql, startPostgres } from "../../support/plants/postgres-server.ts";
import { runCommand, startCommandLine } from "../../support/process/index.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

const token = "token-of-the-schema-test";
const timeout = 120_000;
let postgres: PostgresServer;
beforeAll(async () => void (postgres = await startPostgres()), timeout);
afterAll(() => postgres[Symbol.asyncDispose]());

/** A store, and how to change its schema's version. */
type Store = { readonly url: string; readonly setVersion: (version: number) => Promise<void> };

// oxfmt-ignore
const stores: readonly { name: string; create: (folder: TempFolder) => Promise<Store> }[] = [
  {
    name: "SQLite",
    create: async (folder) => ({
      url: `sqlite:${folder.file("plants.db")}`,
      setVersion: async (version) => {
        using db = new DatabaseSync(folder.file("plants.db"), { timeout: 5_000 });
        db.exec(`PRAGMA user_version = ${version}`);
      },
    }),
  },
  { name: "PostgreSQL", create: async () => {
      const url = await postgres.createSchema();
      const setVersion = async (version: number): Promise<void> =>
        void (await runSql(url, `UPDATE plantstore_schema SET version = ${version}`));
      return { url, setVersion };
    } },
];

const commands = [["serve"], ["check"], ["import"], ["export"], ["deletions"], ["migrate"]];
const says =
  "its schema has version 3, which requires a release of schema version 2 or newer, " +
  "but this release has schema version 1: use a newer release";

test.each(stores)("each command rejects a $name schema that is too new", { timeout }, async ({ create }) => {
  using folder = createTempFolder();
  const { url, setVersion } = await create(folder);
  const environment = { DATABASE_URL: url, PLANTSTORE_TOKENS: token, PORT: "0" };
  expect((await runCommand(["migrate"], environment)).exitCode).toBe(0);
  await setVersion(3);
  for (const words of commands) {
    const { exitCode, err } = await runCommand(words, environment, "7\n");
    expect({ words, exitCode, err }).toEqual({ words, exitCode: 1, err: [expect.stringContaining(says)] });
  }
});

test.each(stores)("a server on $name logs a newer schema and is not ready", { timeout }, async ({ create }) => {
  using folder = createTempFolder();
  const { url, setVersion } = await create(folder);
  const environment = { DATABASE_URL: url, PLANTSTORE_TOKENS: token, PORT: "0", LOG_LEVEL: "info" };
  await runCommand(["migrate"], environment);
  await using server = startCommandLine(["serve"], folder.path, environment);
  const [, port = ""] = await server.find(/"port":(\d+)/);
  const fetchText = async (path: string, method = "GET"): Promise<string> => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
    return `${response.status} ${await response.text()}`;
  };
  const ready = '200 {"status":"ready"}';
  expect(await fetchText("/readyz")).toBe(ready);
  // The server uses an expanded schema.
  await setVersion(2);
  expect(await fetchText("/plants/7", "DELETE")).toMatch(/^400 \{"error":5,/);
  await setVersion(3);
  const options = { timeout: 20_000 };
  await expect.poll(() => fetchText("/readyz"), options).toBe('503 {"status":"not ready","obstacles":["store"]}');
  expect(await fetchText("/plants/7", "DELETE")).toMatch(/^400 \{"error":14,/);
  await server.find(new RegExp(`"problem":"[^"]*: ${says}"`));
  await setVersion(2);
  await expect.poll(() => fetchText("/readyz"), { timeout: 20_000 }).toBe(ready);
  expect(await fetchText("/plants/7", "DELETE")).toMatch(/^400 \{"error":5,/);
  expect(await server.stop("SIGTERM")).toBe(0);
});
