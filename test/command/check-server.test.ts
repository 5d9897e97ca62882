import { renameSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { fileCheckIntervalMs } from "../../src/stores/sqlite/sqlite-store.ts";
import { startOnLoopback } from "@protoport/testing/http";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";
import { runCommand } from "../support/process/run-command.ts";
import { deletePlant, serveToken as token } from "../support/process/serve-command.ts";
import { startConfigured } from "../support/server/start-configured.ts";

interface Served extends AsyncDisposable {
  /** The settings with which `check` runs. */
  readonly environment: Readonly<Record<string, string>>;
  /** Deletes a plant, whether or not that succeeds, and resolves to the status of `/readyz`. */
  readonly status: () => Promise<number>;
}

const createStore = (file: string) => openDatabase({ file, plantsWhenCreated: { first: 1n, last: 9n } }).close();

/** Serves a folder's store `plants.db` with an admin address, by default a free port. */
async function serve(folder: TempFolder, adminSocket?: string): Promise<Served> {
  const settings = { DATABASE_URL: `sqlite:${folder.file("plants.db")}`, PLANTSTORE_TOKENS: token };
  const server = await startConfigured({ ...settings, PLANTSTORE_ADMIN_ADDRESS: adminSocket ?? "127.0.0.1:0" });
  const status = async (): Promise<number> => {
    await deletePlant(server.baseUrl, 77);
    return (await fetch(`${server.baseUrl}/readyz`, { headers: { connection: "close" } })).status;
  };
  return {
    environment: { ...settings, PLANTSTORE_ADMIN_ADDRESS: adminSocket ?? String(server.admin?.port) },
    status,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

test("check asks a running server, and passes if it reports no problem", async () => {
  using folder = createTempFolder();
  createStore(folder.file("plants.db"));
  await using served = await serve(folder);
  expect(await served.status()).toBe(200);
  const { PLANTSTORE_ADMIN_ADDRESS: port } = served.environment;
  expect(await runCommand(["check"], served.environment)).toEqual({
    exitCode: 0,
    out: [],
    err: [`the server at 127.0.0.1:${port} reports no problem`, "the configuration is valid"],
  });
});

test("check asks a running server over its admin socket", async () => {
  using folder = createTempFolder();
  createStore(folder.file("plants.db"));
  const socket = folder.file("admin.sock");
  await using served = await serve(folder, `unix:${socket}`);
  expect(await served.status()).toBe(200);
  expect(await runCommand(["check"], served.environment)).toEqual({
    exitCode: 0,
    out: [],
    err: [`the server at ${socket} reports no problem`, "the configuration is valid"],
  });
  renameSync(folder.file("plants.db"), folder.file("moved.db"));
  await expect.poll(served.status).toBe(503);
  const { exitCode, err } = await runCommand(["check"], served.environment);
  expect({ exitCode, answer: err[0] }).toEqual({
    exitCode: 1,
    answer: expect.stringMatching(`^the server at ${socket} is not ready: store: .*the file was moved, replaced`),
  });
});

test.each<[name: string, enter: (folder: TempFolder) => void, problem: string, own: string]>(
  // oxfmt-ignore
  [
    ["deleted file", (folder) => rmSync(folder.file("plants.db")),
      "store: plants.db: the file was moved, replaced or deleted", "file not found"],
    ["replaced file", (folder) => {
        createStore(folder.file("new.db"));
        renameSync(folder.file("new.db"), folder.file("plants.db"));
      }, "store: plants.db: the file was moved, replaced or deleted", "the running server is not ready"],
    ["changed symbolic link", (folder) => {
        createStore(folder.file("other.db"));
        rmSync(folder.file("plants.db"));
        symlinkSync("other.db", folder.file("plants.db"));
      }, "store: plants.db: the file was moved, replaced or deleted", "the running server is not ready"],
    ["newer schema", (folder) => {
        using db = openDatabase({ file: folder.file("plants.db") });
        db.exec("PRAGMA user_version = 99");
      }, "its schema has version 99", "its schema has version 99"],
  ],
)("check reports a %s from a running server", async (_name, enter, problem, own) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  using folder = createTempFolder();
  createStore(folder.file("volume.db"));
  symlinkSync("volume.db", folder.file("plants.db"));
  await using served = await serve(folder);
  expect(await served.status()).toBe(200);
  enter(folder);
  vi.advanceTimersByTime(fileCheckIntervalMs);
  await expect.poll(served.status).toBe(503);
  const { exitCode, err } = await runCommand(["check"], served.environment);
  const [answer = "", ...others] = err;
  expect({ exitCode, answer: answer.replaceAll(`${folder.path}/`, ""), own: others.at(-1) }).toEqual({
    exitCode: 1,
    answer: expect.stringMatching(new RegExp(`^the server at 127\\.0\\.0\\.1:\\d+ is not ready: .*${problem}`)),
    own: expect.stringContaining(own),
  });
});

test.each([
  { address: "1", asked: "127.0.0.1:1" },
  { address: "0.0.0.0:1", asked: "127.0.0.1:1" },
  { address: "[::]:1", asked: "[::1]:1" },
  { address: "unix:no-server.sock", asked: "no-server.sock" },
])("without a server at the admin address $address, check passes", async ({ address, asked }) => {
  const environment = { DATABASE_URL: "memory:", PLANTSTORE_ADMIN_ADDRESS: address, PLANTSTORE_TOKENS: token };
  const { exitCode, err } = await runCommand(["check"], environment);
  expect({ exitCode, err }).toEqual({
    exitCode: 0,
    err: [expect.stringContaining(`no running server responds at ${asked}: connect E`), "the configuration is valid"],
  });
});

test.each<[name: string, server: Server, host: string, problem: string]>([
  ["does not respond", createTcpServer(), "", "the response timed out"],
  ["speaks another protocol", createTcpServer((socket) => socket.end("SSH-2.0-x\r\n")), "", "another program responds"],
  ["responds with HTML", createServer((_, response) => response.end("<p>Hi</p>")), "", "another program responds"],
  ["responds with a JSON string", createServer((_, response) => response.end('"x"')), "", "another program responds"],
  ["responds with 404", createServer((_, response) => response.writeHead(404).end()), "0.0.0.0:", "HTTP status 404"],
])("check passes when another program at the admin address %s", async (_name, server, host, problem) => {
  await using other = await startOnLoopback(server);
  const { port } = other.address;
  const environment = { DATABASE_URL: "memory:", PLANTSTORE_ADMIN_ADDRESS: `${host}${port}` };
  const { exitCode, err } = await runCommand(["check"], environment);
  const want = { exitCode: 0, first: `no running server responds at 127.0.0.1:${port}: ${problem}` };
  expect({ exitCode, first: err[0] }).toEqual(want);
});

test.each([
  { name: "next to a running server", other: {}, exitCode: 0, last: "the configuration is valid" },
  {
    name: "even if the store cannot be opened",
    other: { DATABASE_URL: "sqlite:none.db" },
    exitCode: 1,
    last: expect.stringContaining("none.db"),
  },
])("check warns if another program uses the port, $name", async ({ other: changed, exitCode, last }) => {
  using folder = createTempFolder();
  createStore(folder.file("plants.db"));
  await using served = await serve(folder);
  await using other = await startOnLoopback(createServer((_, response) => response.writeHead(404).end()));
  const { port } = other.address;
  const result = await runCommand(["check"], { ...served.environment, PORT: String(port), ...changed });
  expect({ exitCode: result.exitCode, err: result.err.slice(-2) }).toEqual({
    exitCode,
    err: [
      `warning: port ${port} is in use, and no plant store responds; stop the program that uses it, or choose another PORT`,
      last,
    ],
  });
});
