import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { within } from "../support/deadline.ts";
import { type CommandLine, startCommandLine } from "../support/process/command-line.ts";
import { runCommand } from "../support/process/run-command.ts";
import { createTempFolder, type TempFolder } from "../support/process/temp-folder.ts";

const token = "token-of-the-command-line-test";

const settings: Readonly<Record<string, string>> = {
  PORT: "0",
  DATABASE_URL: "sqlite:plants.db",
  PLANTSTORE_TOKENS: token,
  PLANTSTORE_DRAIN_DELAY_MS: "0",
};

function serve(folder: TempFolder, environment: Record<string, string> = {}): CommandLine {
  return startCommandLine(["serve"], folder.path, { ...settings, ...environment });
}

async function baseUrlOf(server: CommandLine): Promise<string> {
  const [, port] = await server.find(/"port":(\d+)/);
  return `http://127.0.0.1:${String(port)}`;
}

async function deletePlant(baseUrl: string, id: number, credential: string = token): Promise<number> {
  // A connection that is kept open would be waited for by the drain.
  const headers = { authorization: `Bearer ${credential}`, connection: "close" };
  const { status, body } = await fetch(`${baseUrl}/plants/${id}`, { method: "DELETE", headers });
  await body?.cancel();
  return status;
}

test("a server whose log nobody reads ends all the same", async () => {
  using folder = createTempFolder();
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  server.process.stderr.pause();
  // More lines than a pipe takes.
  for (let asked = 0; asked < 2000; asked += 100) {
    await Promise.all(Array.from({ length: 100 }, () => deletePlant(baseUrl, 1, "a-token-that-nobody-knows")));
  }
  const ended = once(server.process, "exit");
  server.process.kill("SIGTERM");
  expect(await within(ended, "the end of the server")).toEqual([0, null]);
  server.process.stderr.resume();
});

test("no flood of refused requests pushes the line of a deletion out of a log that nobody reads", async () => {
  using folder = createTempFolder();
  const database = { DATABASE_URL: `sqlite:${folder.file("plants.db")}` };
  await runCommand(["migrate"], database);
  await runCommand(["import"], database, "7\n");
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  server.process.stderr.pause();
  const refused = 12_000;
  const socket = connect(Number(new URL(baseUrl).port), "127.0.0.1");
  socket.write(`GET /${"x".repeat(255)} HTTP/1.1\r\nhost: localhost\r\n\r\n`.repeat(refused));
  let answered = 0;
  for await (const bytes of socket) {
    answered += String(bytes).split("HTTP/1.1 400").length - 1;
    if (answered >= refused - 10) break;
  }
  expect(await deletePlant(baseUrl, 7)).toBe(204);
  server.process.stderr.resume();
  await server.find(/"plantId":"7"/);
  server.process.kill("SIGTERM");
  expect(await server.end()).toBe(0);
  expect(server.stderr()).toMatch(/"lost":\d+/);
});
