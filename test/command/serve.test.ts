import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { demoLines, prepareDemo } from "../../src/command/demo.ts";
import { initializedRequest } from "@protoport/testing";
import { createTempFolder, freePort } from "@protoport/testing/process";
import { createMissingStore } from "../support/plants/sqlite-file.ts";
import { type Ended, runCommand } from "../support/process/run-command.ts";
import { deletePlant, serveToken as token } from "../support/process/serve-command.ts";

/** Creates a folder that is the working directory until it is disposed of. */
function enterFolder(): Disposable {
  const folder = createTempFolder();
  const cwd = process.cwd();
  process.chdir(folder.path);
  return {
    [Symbol.dispose]: () => {
      process.chdir(cwd);
      folder[Symbol.dispose]();
    },
  };
}

/** `serve` in this process, in the working directory. */
interface Serving extends AsyncDisposable {
  readonly baseUrl: string;
  /** The lines on standard output so far. */
  readonly lines: readonly string[];
  readonly stop: (signal: NodeJS.Signals) => void;
  readonly ended: Promise<Ended>;
}

async function serve(flags: readonly string[], environment: Readonly<Record<string, string>>): Promise<Serving> {
  const lines: string[] = [];
  const { promise: stopped, resolve: stop } = Promise.withResolvers<NodeJS.Signals>();
  const { promise: listening, resolve: onListening } = Promise.withResolvers<void>();
  const port = String(await freePort());
  const settings = { PORT: port, LOG_LEVEL: "silent", PLANTSTORE_DRAIN_DELAY_MS: "0", ...environment };
  const ended = runCommand(["serve", ...flags], settings, "", {
    out: (line) => {
      lines.push(line);
      if (line === "Press Ctrl-C to stop.") onListening();
    },
    stopSignal: () => stopped,
    onHangup: () => onListening(),
  });
  await Promise.race([listening, ended.then(({ err }) => expect.unreachable(err.join("\n")))]);
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    lines,
    stop,
    ended,
    [Symbol.asyncDispose]: async () => {
      stop("SIGTERM");
      await ended;
    },
  };
}

function serveStore(): Promise<Serving> {
  createMissingStore("plants.db");
  return serve([], { DATABASE_URL: "sqlite:plants.db", PLANTSTORE_TOKENS: token });
}

test("serve exits with 0 after a stop signal", async () => {
  using _ = enterFolder();
  await using server = await serveStore();
  expect(await deletePlant(server.baseUrl, 1)).toBe(400);
  server.stop("SIGTERM");
  expect(await server.ended).toEqual({ exitCode: 0, out: [], err: [] });
});

test("serve exits with 74 if its store needs a restart", async () => {
  using _ = enterFolder();
  await using server = await serveStore();
  rmSync("plants.db-shm");
  expect(await deletePlant(server.baseUrl, 1)).toBe(400);
  expect((await server.ended).exitCode).toBe(74);
});

describe("a demo", () => {
  let folder: Disposable;
  let demo: Serving;
  const demoToken = (): string => demo.lines[2]?.replace("Authorization: Bearer ", "") ?? "";
  const settings = { DATABASE_URL: "sqlite:other.db", PLANTSTORE_TOKENS: token, PLANTSTORE_DOCS: "" };
  let admin: string;

  beforeAll(async () => {
    folder = enterFolder();
    admin = String(await freePort());
    demo = await serve(["--demo"], { ...settings, PLANTSTORE_ADMIN_ADDRESS: admin });
  });
  afterAll(async () => {
    await demo[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  test("does not use the environment's database and tokens", async () => {
    expect(await deletePlant(demo.baseUrl, 1)).toBe(400);
    expect(existsSync("other.db")).toBe(false);
  });

  test("serves MCP tools at the URL that it prints", async () => {
    const url = demo.lines.join("\n").match(/as an MCP server: (\S+)/)?.[1] ?? "";
    const { header, body } = initializedRequest("tools/list", {}, [["authorization", `Bearer ${demoToken()}`]]);
    const response = await fetch(url, { method: "POST", headers: Object.fromEntries(header), body: String(body) });
    const want = { result: { tools: [{ name: "plantstore_v1_PlantService_DeletePlant" }] } };
    expect(await response.json()).toMatchObject(want);
  });

  test("serves metrics on the configured address", async () =>
    expect((await fetch(`http://127.0.0.1:${admin}/metrics`)).status).toBe(200));

  test("prints commands with its address, its token and existing plants", () => {
    const authority = demo.baseUrl.slice("http://".length);
    const credential = `-H 'Authorization: Bearer ${demoToken()}'`;
    expect(demo.lines.slice(-5)).toEqual([
      `curl -i -X DELETE ${credential} http://${authority}/plants/1`,
      `grpcurl -plaintext ${credential} -d '{"id":"2"}' ${authority} plantstore.v1.PlantService/DeletePlant`,
      `npx buf curl --protocol grpc --http2-prior-knowledge --reflect-header '*' ${credential} -d '{"id":"3"}' http://${authority}/plantstore.v1.PlantService/DeletePlant`,
      "",
      "Press Ctrl-C to stop.",
    ]);
  });

  test("stores its token in a file that only its owner can read", () => {
    expect(readFileSync(".plantstore/token", "utf8")).toBe(`${demoToken()}\n`);
    expect([".plantstore", ".plantstore/token"].map((name) => statSync(name).mode & 0o777)).toEqual([0o700, 0o600]);
  });

  test("reports the settings that it ignores when it ends", async () => {
    demo.stop("SIGTERM");
    const line = "ignored settings that the demo sets itself: DATABASE_URL, PLANTSTORE_TOKENS";
    expect((await demo.ended).err).toEqual([line]);
  });
});

test.each([
  [
    ["--demo"],
    "PLANTSTORE_ADMIN_ADDRES",
    'unknown setting "PLANTSTORE_ADMIN_ADDRES", did you mean "PLANTSTORE_ADMIN_ADDR',
  ],
  [["--demo"], "PLANTSTORE_DRAIN_DELAY_MS", "PLANTSTORE_DRAIN_DELAY_MS must be "],
  // The variable with which a supervisor starts its workers.
  [[], "PLANTSTORE_WORKER", 'unknown setting "PLANTSTORE_WORKER", did you mean "PLANTSTORE_WORKERS"?'],
])("serve %j refuses %s=on", async (flags, name, want) => {
  using _ = enterFolder();
  const { exitCode, err } = await runCommand(["serve", ...flags], { DATABASE_URL: "memory:", [name]: "on" });
  expect(exitCode).toBe(78);
  expect(err.join("\n")).toContain(want);
});

test.each([
  { host: "0.0.0.0", want: "127.0.0.1" },
  { host: "::", want: "[::1]" },
  { host: "localhost", want: "localhost" },
])("a demo that listens on $host has $want in its URL", ({ host, want }) => {
  const demo = { token: "t", ignored: [], environment: {} };
  expect(demoLines(demo, { host, port: 8080 }, [])[0]).toContain(` http://${want}:8080.`);
});

test("a demo refuses to start with an empty token file", async () => {
  using _ = enterFolder();
  mkdirSync(".plantstore");
  writeFileSync(".plantstore/token", "");
  const { exitCode, err } = await runCommand(["serve", "--demo", "--port", "0"]);
  const want = { exitCode: 1, err: ["plantstore: .plantstore/token is empty; delete it to create a new token"] };
  expect({ exitCode, err }).toEqual(want);
});

test("two demos that create a folder at the same time share a token", async () => {
  using _ = enterFolder();
  const [first, second] = await Promise.all([prepareDemo({}), prepareDemo({})]);
  expect(second.token).toBe(first.token);
});

test("a demo restricts access to an existing token file", async () => {
  using _ = enterFolder();
  mkdirSync(".plantstore");
  writeFileSync(".plantstore/token", "sixteen-characters\n", { mode: 0o644 });
  expect((await prepareDemo({})).token).toBe("sixteen-characters");
  expect(statSync(".plantstore/token").mode & 0o777).toBe(0o600);
});

test("a demo keeps settings that do not change its store, and reports the others", async () => {
  using _ = enterFolder();
  // oxfmt-ignore
  const kept = Object.fromEntries([
    "HOST", "PORT", "LOG_LEVEL", "PLANTSTORE_AUDIT", "PLANTSTORE_LOG_PROBES", "PLANTSTORE_REQUEST_ID_RESPONSES",
    "PLANTSTORE_ADMIN_ADDRESS", "PLANTSTORE_CORS_ORIGINS", "PLANTSTORE_RATE_PER_PRINCIPAL",
    "PLANTSTORE_RATE_PER_ADDRESS", "PLANTSTORE_DRAIN_DELAY_MS", "PLANTSTORE_DRAIN_TIMEOUT_MS", "PLANTSTORE_X",
  ].map((name) => [name, "mine"]));
  const demo = await prepareDemo({ ...kept, PLANTSTORE_WORKERS: "2", PLANTSTORE_MCP: "off", PLANTSTORE_DOCS: "" });
  expect(demo.environment).toMatchObject({ ...kept, PLANTSTORE_MCP: "on" });
  const want = [["PLANTSTORE_WORKERS", "PLANTSTORE_MCP"], undefined];
  expect([demo.ignored, demo.environment["PLANTSTORE_WORKERS"]]).toEqual(want);
});

test.for([
  [0, ["1", "1", "1"], "All plants are deleted; delete .plantstore/ to start with new ones. Press Ctrl-C to stop."],
  [1, ["7", "7", "7"], "Press Ctrl-C to stop."],
  [2, ["7", "8", "8"], "Press Ctrl-C to stop."],
] as const)("a demo with %i plants prints commands for %j", ([count, want, end]) => {
  const options = { token: "t", ignored: [], environment: {} };
  const lines = demoLines(options, { host: "h", port: 1 }, [7n, 8n].slice(0, count));
  const ids = lines.flatMap((line) => /plants\/(\d+)$|"id":"(\d+)"/.exec(line)?.slice(1).filter(Boolean) ?? []);
  expect([ids, lines.at(-1)]).toEqual([want, end]);
});
