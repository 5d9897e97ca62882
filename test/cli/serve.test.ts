import { createServer } from "node:net";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CommandLine, startCommandLine } from "../support/process/command-line.ts";
import { baseUrlOf, deletePlant, serve, serveToken as token } from "../support/process/serve-command.ts";
import { createTempFolder, type TempFolder } from "../support/process/temp-folder.ts";

test("SIGINT ends an idle server with exit code 0", async () => {
  using folder = createTempFolder();
  await using server = serve(folder);
  expect(await deletePlant(await baseUrlOf(server), 1)).toBe(400);
  server.process.kill("SIGINT");
  expect(await server.end()).toBe(0);
});

test("a draining server is not ready, serves on until the delay is over, and ends at a second signal with exit code 1", async () => {
  using folder = createTempFolder();
  await using server = serve(folder, { PLANTSTORE_DRAIN_DELAY_MS: "3600000" });
  const baseUrl = await baseUrlOf(server);
  server.process.kill("SIGTERM");
  await server.find(/draining/);
  const ready = await fetch(`${baseUrl}/readyz`);
  expect({ status: ready.status, body: await ready.json() }).toEqual({
    status: 503,
    body: { status: "not ready", obstacles: ["draining"] },
  });
  expect(await deletePlant(baseUrl, 1)).toBe(400);
  server.process.kill("SIGTERM");
  expect(await server.end()).toBe(1);
});

test.each([
  { name: "a file", path: "text", want: "text is in use, or is no socket" },
  { name: "a folder that is not there", path: "none/s", want: "the folder of none/s is not there" },
])("a Unix socket in the place of $name is refused with exit code 1", async ({ path, want }) => {
  using folder = createTempFolder();
  writeFileSync(folder.file("text"), "mine");
  await using server = serve(folder, { HOST: `unix:${path}` });
  expect(await server.end()).toBe(1);
  expect(server.stderr()).toContain(want);
});

test("a fault of the store that only a restart can mend ends the server with exit code 74", async () => {
  using folder = createTempFolder();
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  rmSync(folder.file("plants.db-shm"));
  expect(await deletePlant(baseUrl, 1)).toBe(400);
  expect(await server.end()).toBe(74);
  expect(server.stderr()).toMatch(/"level":"fatal".*its -shm file.*"msg":"only a restart can help"/);
});

test("a server whose file is gone waits, not ready: a restart would serve an empty store", async () => {
  using folder = createTempFolder();
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  rmSync(folder.file("plants.db"));
  expect(await deletePlant(baseUrl, 1)).toBe(400);
  // The line is of a later look than the one that would end it.
  await server.find(/"problem":"plants.db: the file was moved, replaced or deleted","msg":"not ready"/);
  expect((await fetch(`${baseUrl}/readyz`)).status).toBe(503);
  server.process.kill("SIGTERM");
  expect(await server.end()).toBe(0);
});

test("a port that is in use is named, with exit code 1", async () => {
  using folder = createTempFolder();
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const address = other.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await using server = serve(folder, { PORT: String(port) });
  expect(await server.end()).toBe(1);
  expect(server.stderr()).toContain(`port ${port} is in use`);
  expect(server.stderr()).toContain(`such as PORT=${port + 1}`);
  other.close();
});

test("no token is logged at any level, wherever the client puts it", async () => {
  using folder = createTempFolder();
  await using server = serve(folder, { LOG_LEVEL: "trace" });
  const baseUrl = await baseUrlOf(server);
  await deletePlant(baseUrl, 1);
  await deletePlant(baseUrl, 1, `${token}-that-is-wrong`);
  const query = await fetch(`${baseUrl}/plants/1?access_token=${token}`, { method: "DELETE" });
  await query.body?.cancel();
  server.process.kill("SIGTERM");
  expect(await server.end()).toBe(0);
  const written = server.stdout() + server.stderr();
  expect(written.match(/"msg":"call"/g)).toHaveLength(3);
  expect(written).not.toContain(token);
});

test("SIGHUP reads the credentials again and does not end the server, and SIGTERM ends it with exit code 0", async () => {
  using folder = createTempFolder();
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  // The address is logged a moment before the server has started, and what is not there is not reloaded.
  expect(await deletePlant(baseUrl, 1)).toBe(400);
  server.process.kill("SIGHUP");
  await server.find(/"msg":"reloading"/);
  expect(await deletePlant(baseUrl, 1)).toBe(400);
  server.process.kill("SIGTERM");
  expect(await server.end()).toBe(0);
});

interface Demo {
  readonly server: CommandLine;
  readonly baseUrl: string;
  readonly token: string;
  [Symbol.asyncDispose](): Promise<void>;
}

async function startDemo(folder: TempFolder, environment: Record<string, string> = {}): Promise<Demo> {
  const server = startCommandLine(["serve", "--demo"], folder.path, { PORT: "0", ...environment });
  // The last of the lines; the others are there by then.
  await server.find(/Ctrl-C stops it\.\n/);
  const [, credential = ""] = await server.find(/^Authorization: Bearer (\S+)$/m);
  const [baseUrl] = await server.find(/http:\/\/127\.0\.0\.1:\d+/);
  return { server, baseUrl, token: credential, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

function modeOf(folder: TempFolder, name: string): number {
  return statSync(folder.file(name)).mode & 0o777;
}

async function stop({ server }: Demo): Promise<void> {
  server.process.kill("SIGTERM");
  expect(await server.end()).toBe(0);
}

test("the demo deletes plants 1 to 1000 once, and keeps that and its token over a restart", async () => {
  using folder = createTempFolder();
  await using first = await startDemo(folder);
  const answers = [];
  for (const id of [1, 1000, 1, 0, 1001]) answers.push(await deletePlant(first.baseUrl, id, first.token));
  await stop(first);
  await using second = await startDemo(folder);
  for (const id of [1, 2]) answers.push(await deletePlant(second.baseUrl, id, second.token));
  expect({ answers, token: second.token }).toEqual({
    answers: [204, 204, 400, 400, 400, 400, 204],
    token: first.token,
  });
});

/** The ids in the commands that a demo prints. */
async function idsOf({ server }: Demo): Promise<string[]> {
  await server.find(/Ctrl-C stops it\.\n/);
  return [...server.stdout().matchAll(/(?:\/plants\/|"id":")(\d+)/g)].map(([, id = ""]) => id);
}

test("the demo prints plants that are there, also at its second start, and how to stop it", async () => {
  using folder = createTempFolder();
  await using first = await startDemo(folder);
  expect(await idsOf(first)).toEqual(["1", "2", "3"]);
  for (const id of [1, 3]) await deletePlant(first.baseUrl, id, first.token);
  await stop(first);
  await using second = await startDemo(folder);
  expect(await idsOf(second)).toEqual(["2", "4", "5"]);
});

test("the demo takes a token file away from others that was copied to where they can read it", async () => {
  using folder = createTempFolder();
  mkdirSync(folder.file(".plantstore"));
  writeFileSync(folder.file(".plantstore/token"), `${token}\n`, { mode: 0o644 });
  await using demo = await startDemo(folder);
  expect({ token: demo.token, mode: modeOf(folder, ".plantstore/token") }).toEqual({ token, mode: 0o600 });
});

test("a demo whose token was lost says so, rather than refusing every call", async () => {
  using folder = createTempFolder();
  mkdirSync(folder.file(".plantstore"));
  writeFileSync(folder.file(".plantstore/token"), "");
  await using server = startCommandLine(["serve", "--demo"], folder.path, { PORT: "0" });
  expect(await server.end()).toBe(1);
  expect(server.stderr()).toContain(".plantstore/token is empty");
});

test("the demo leaves alone the database and the tokens that are set for something else", async () => {
  using folder = createTempFolder();
  const database = folder.file("other.db");
  await using demo = await startDemo(folder, { DATABASE_URL: `sqlite:${database}`, PLANTSTORE_TOKENS: token });
  expect(await deletePlant(demo.baseUrl, 1)).toBe(400);
  expect(statSync(database, { throwIfNoEntry: false })).toBeUndefined();
});

describe("a demo", () => {
  let folder: TempFolder;
  let demo: Demo;
  beforeAll(async () => {
    folder = createTempFolder();
    demo = await startDemo(folder);
  });
  afterAll(async () => {
    await demo[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  test("is the only one of its folder, and goes on when another is refused", async () => {
    await using second = startCommandLine(["serve", "--demo"], folder.path, { PORT: "0" });
    expect(await second.end()).toBe(1);
    expect(second.stderr()).toMatch(
      /^plantstore: another demo uses \.plantstore\/: stop it, or start this one in another/,
    );
    expect(await deletePlant(demo.baseUrl, 1000, demo.token)).toBe(204);
  });

  test("keeps its token in a file for its owner alone", () => {
    expect(readFileSync(folder.file(".plantstore/token"), "utf8")).toBe(`${demo.token}\n`);
    expect([modeOf(folder, ".plantstore"), modeOf(folder, ".plantstore/token")]).toEqual([0o700, 0o600]);
  });

  test("prints lines to paste, with the address and the token of this start", () => {
    const lines = demo.server.stdout().trimEnd().split("\n").slice(-5);
    const authority = demo.baseUrl.slice("http://".length);
    const credential = `-H 'Authorization: Bearer ${demo.token}'`;
    expect(lines).toEqual([
      `curl -i -X DELETE ${credential} http://${authority}/plants/1`,
      `grpcurl -plaintext ${credential} -d '{"id":"2"}' ${authority} plantstore.v1.PlantService/DeletePlant`,
      `npx buf curl --protocol grpc --http2-prior-knowledge --reflect-header '*' ${credential} -d '{"id":"3"}' http://${authority}/plantstore.v1.PlantService/DeletePlant`,
      "",
      "Ctrl-C stops it.",
    ]);
  });
});
