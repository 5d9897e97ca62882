import { afterAll, beforeAll, expect, test } from "vitest";
import { type CommandLine, startCommandLine } from "../support/command-line.ts";
import { type PostgresServer, runSql, startPostgres } from "../support/postgres-server.ts";
import { runCommand } from "../support/run-command.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

const token = "token-of-the-workers-test";

let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

/** Three workers on plants 1 to 100, once all of them listen. */
async function serve(folder: TempFolder): Promise<{ server: CommandLine; baseUrl: string; database: string }> {
  const database = await postgres.createSchema();
  const ids = Array.from({ length: 100 }, (_, index) => String(index + 1));
  await runCommand(["migrate"], { DATABASE_URL: database });
  await runCommand(["import"], { DATABASE_URL: database }, ids.join("\n"));
  const server = startCommandLine(["serve", "--workers", "3"], folder.path, {
    PORT: "0",
    DATABASE_URL: database,
    PLANTSTORE_TOKENS: token,
    PLANTSTORE_DRAIN_DELAY_MS: "0",
  });
  const [, port = ""] = await server.find(/"port":(\d+)(?:.|\n)*"port":\1(?:.|\n)*"port":\1/);
  return { server, baseUrl: `http://127.0.0.1:${port}`, database };
}

/** Deletes a plant over a connection of its own, so that the kernel deals it to any of the workers. */
async function deletePlant(baseUrl: string, id: number): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, connection: "close" };
  const { status, body } = await fetch(`${baseUrl}/plants/${id}`, { method: "DELETE", headers });
  await body?.cancel();
  return status;
}

test("three workers share a port and delete every plant once; a signal drains them all", async () => {
  using folder = createTempFolder();
  const { server, baseUrl, database } = await serve(folder);
  await using ended = server;
  const requests = Array.from({ length: 200 }, (_, index) => deletePlant(baseUrl, (index % 100) + 1));
  const answers = await Promise.all(requests);
  expect(answers.filter((status) => status === 204)).toHaveLength(100);
  expect(await runSql(database, "SELECT count(*)::int AS plants FROM plants")).toEqual([{ plants: 0 }]);
  server.process.kill("SIGTERM");
  expect(await ended.end()).toBe(0);
  expect(server.stderr().match(/"msg":"stopped"/g)).toHaveLength(3);
});

test("a worker that is killed is replaced, and the port goes on answering", async () => {
  using folder = createTempFolder();
  const { server, baseUrl } = await serve(folder);
  await using ended = server;
  const [, pid = ""] = /"pid":(\d+),"address"/.exec(server.stderr()) ?? [];
  process.kill(Number(pid), "SIGKILL");
  await server.find(/a worker ended and is replaced/);
  await server.find(/(?:"msg":"listening"(?:.|\n)*){4}/);
  expect(await deletePlant(baseUrl, 1)).toBe(204);
  server.process.kill("SIGTERM");
  expect(await ended.end()).toBe(0);
});

test("workers that cannot start end the command with the exit code of the first", async () => {
  using folder = createTempFolder();
  const database = await postgres.createSchema();
  await using server = startCommandLine(["serve", "--workers", "2"], folder.path, {
    PORT: "0",
    DATABASE_URL: database,
    PLANTSTORE_TOKENS: token,
  });
  expect(await server.end()).toBe(1);
  expect(server.stderr()).toContain("plantstore migrate");
});
