import { chmodSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { type CommandLine, createTempFolder, projectFolder, type TempFolder
} from "@protoport/testing";
import { openDatabase } from "../../../../src/stores/sqlite/database.ts";
import { overwrite, readSqlite } from "../../../support/plants/sqlite-file.ts";
import { startCommandLine } from "../../../support/process/command-line.ts";
import { baseUrlOf, deletePlant, serve, serveToken as token } from "../../../support/process/serve-command.ts";
import { startOtlpReceiver } from "../../../../protoport/testing/src/telemetry/otlp-receiver.ts";

describe("a server", () => {
  let folder: TempFolder;
  let server: CommandLine;
  let baseUrl: string;
  beforeAll(async () => {
    folder = createTempFolder();
    writeFileSync(
      folder.file("log-modules.mjs"),
      `import { registerHooks } from "node:module";
       registerHooks({ load(url, context, next) { console.log(url); return next(url, context); } });
       process.once("beforeExit", () => console.log("before exit"));`,
    );
    server = serve(folder, { LOG_LEVEL: "trace", NODE_OPTIONS: "--import=./log-modules.mjs" });
    baseUrl = await baseUrlOf(server);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  test("does not load telemetry modules without metrics and traces", () => {
    expect(server.stdout()).toMatch(/\/src\/server\/start-server\.ts$/m);
    expect(server.stdout()).toMatch(/\/protoport\/telemetry\/src\/logs\/call-log\.ts$/m);
    const found = server.stdout();
    expect(found).not.toMatch(/\/protoport\/telemetry\/src\/(?:metrics|opentelemetry)\/|\/plant-telemetry\.ts$/m);
  });

  test("does not load MCP modules without tools", () => {
    expect(server.stdout()).toMatch(/\/protoport\/gateway\/src\/protocols\/rest\/protocol\.ts$/m);
    expect(server.stdout()).not.toMatch(/\/protoport\/gateway\/src\/mcp\/|\/plant-tools\.ts$/m);
  });

  test("reloads its credentials on SIGHUP and keeps running", async () => {
    // The address is logged just before the server has started. A reload before that does nothing.
    expect(await deletePlant(baseUrl, 1)).toBe(400);
    server.process.kill("SIGHUP");
    await server.find(/"msg":"reloading"/);
    expect(await deletePlant(baseUrl, 1)).toBe(400);
  });

  test("never logs a token, and exits with 0 on SIGINT", async () => {
    await deletePlant(baseUrl, 2);
    await deletePlant(baseUrl, 2, `${token}-that-is-wrong`);
    const request = { method: "DELETE", headers: { connection: "close" } };
    await (await fetch(`${baseUrl}/plants/2?access_token=${token}`, request)).body?.cancel();
    expect(await server.stop("SIGINT")).toBe(0);
    // The process has exited by itself, not because of the timer that forces an exit.
    expect(server.stdout()).toContain("before exit");
    const written = server.stdout() + server.stderr();
    expect(written.match(/"path":"\/plants\/2".*"msg":"call"/g)).toHaveLength(3);
    expect(written).not.toContain(token);
  });
});

test("a draining server keeps serving and exits on a second signal", async () => {
  using folder = createTempFolder();
  await using server = serve(folder, { PLANTSTORE_DRAIN_DELAY_MS: "3600000" });
  const baseUrl = await baseUrlOf(server);
  server.process.kill("SIGTERM");
  await server.find(/draining/);
  // The wait is longer than the process may run after its drain.
  await delay(1_200);
  const ready = await fetch(`${baseUrl}/readyz`);
  const want = { status: 503, body: { status: "not ready", obstacles: ["draining"] } };
  expect({ status: ready.status, body: await ready.json() }).toEqual(want);
  expect(await deletePlant(baseUrl, 1)).toBe(400);
  expect(await server.stop("SIGTERM")).toBe(1);
});

test("a server exits even if the collector never responds", async () => {
  await using collector = await startOtlpReceiver();
  collector.respond = () => undefined;
  using folder = createTempFolder();
  await using server = serve(folder, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    // The timeout is an hour, so that it does not cause the exit.
    OTEL_EXPORTER_OTLP_TIMEOUT: "3600000",
  });
  expect(await deletePlant(await baseUrlOf(server), 1)).toBe(400);
  expect(await server.stop("SIGTERM")).toBe(0);
  expect(collector.requests.length).toBeGreaterThan(0);
});

test("a server exits with 78 when the OpenTelemetry SDK cannot be loaded", async () => {
  using folder = createTempFolder();
  const program = `
    const { Module } = require("node:module");
    const load = Module._load.bind(Module);
    Module._load = (name, ...rest) => {
      if (name === "@opentelemetry/sdk-node") throw new Error("a part is missing");
      return load(name, ...rest);
    };`;
  writeFileSync(folder.file("break.cjs"), program);
  const environment = { NODE_OPTIONS: "--require=./break.cjs", OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" };
  await using server = serve(folder, environment);
  expect(await server.end()).toBe(78);
  expect(server.stderr()).toContain("cannot start the OpenTelemetry SDK: Error: a part is missing");
});

test("a server sends spans to a registered SDK, metrics to its endpoint", async () => {
  await using collector = await startOtlpReceiver();
  await using other = await startOtlpReceiver();
  using folder = createTempFolder();
  const program = `
    import { createRequire } from "node:module";
    const require = createRequire(${JSON.stringify(join(projectFolder, "package.json"))});
    const { OTLPTraceExporter } = require("@opentelemetry/exporter-trace-otlp-proto");
    const { NodeSDK } = require("@opentelemetry/sdk-node");
    const { SimpleSpanProcessor } = require("@opentelemetry/sdk-trace");
    const exporter = new OTLPTraceExporter({ url: "${collector.url}/v1/traces" });
    new NodeSDK({ serviceName: "mine", spanProcessors: [new SimpleSpanProcessor({ exporter })] }).start();`;
  writeFileSync(folder.file("register.mjs"), program);
  await using server = serve(folder, {
    NODE_OPTIONS: "--import=./register.mjs",
    OTEL_LOGS_EXPORTER: "none",
    OTEL_EXPORTER_OTLP_ENDPOINT: other.url,
  });
  expect(await deletePlant(await baseUrlOf(server), 1)).toBe(400);
  await expect.poll(() => collector.spans.map(({ name }) => name)).toEqual(["DELETE plants", "DELETE /plants/{id}"]);
  expect(collector.resources[0]).toMatchObject({ "service.name": "mine" });
  await server.find(new RegExp(`"traceId":"${collector.spans[0]?.traceId}"`));
  expect(await server.stop("SIGTERM")).toBe(0);
  expect(other.spans).toEqual([]);
  expect([...other.metrics]).toContain("http.server.request.duration");
});

test("a server exits with 74 if its store needs a restart", async () => {
  using folder = createTempFolder();
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  rmSync(folder.file("plants.db-shm"));
  expect(await deletePlant(baseUrl, 1)).toBe(400);
  expect(await server.end()).toBe(74);
  expect(server.stderr()).toMatch(
    /"level":"fatal".*"errorCode":"ERR_STORE_FAILED".*its -shm file.*"msg":"the store has failed; restart the server"/,
  );
});

test("a second signal never copies a log that was found overwritten", async () => {
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 50_000n } }).close();
  await using server = serve(folder, { PLANTSTORE_DRAIN_DELAY_MS: "3600000" });
  const baseUrl = await baseUrlOf(server);
  for (const id of [1, 20_000, 40_000]) expect(await deletePlant(baseUrl, id)).toBe(204);
  overwrite(`${file}-wal`);
  expect(await deletePlant(baseUrl, 2)).toBe(400);
  server.process.kill("SIGTERM");
  await server.find(/draining/);
  expect(await server.stop("SIGINT")).toBe(1);
  expect(readSqlite(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
});

test("a server becomes unready after its database file is deleted", async () => {
  using folder = createTempFolder();
  await using server = serve(folder);
  const baseUrl = await baseUrlOf(server);
  rmSync(folder.file("plants.db"));
  expect(await deletePlant(baseUrl, 1)).toBe(400);
  // After this line, the process could exit. It must not, because a restart would serve an empty store.
  await server.find(/"problem":"plants.db: the file was moved, replaced or deleted","msg":"not ready"/);
  expect((await fetch(`${baseUrl}/readyz`)).status).toBe(503);
  expect(await server.stop("SIGTERM")).toBe(0);
});

type Demo = AsyncDisposable & { readonly server: CommandLine; readonly baseUrl: string; readonly token: string };

async function startDemo(folder: TempFolder): Promise<Demo> {
  const server = startCommandLine(["serve", "--demo"], folder.path, { PORT: "0" });
  await server.find(/Press Ctrl-C to stop\.\n/);
  const [, credential = ""] = await server.find(/^Authorization: Bearer (\S+)$/m);
  const [baseUrl] = await server.find(/http:\/\/127\.0\.0\.1:\d+/);
  return { server, baseUrl, token: credential, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

test("two demos in a folder share their plants and token", async () => {
  using folder = createTempFolder();
  await using first = await startDemo(folder);
  await using second = await startDemo(folder);
  expect(await deletePlant(second.baseUrl, 999, first.token)).toBe(204);
  expect(await deletePlant(first.baseUrl, 999, second.token)).toBe(400);
});

test("a demo deletes plants 1 to 1000 once, and keeps its state across restarts", async () => {
  using folder = createTempFolder();
  await using first = await startDemo(folder);
  const statuses = [];
  for (const id of [1, 3, 1000, 1, 0, 1001]) statuses.push(await deletePlant(first.baseUrl, id, first.token));
  expect(statuses).toEqual([204, 204, 204, 400, 400, 400]);
  expect(await first.server.stop("SIGTERM")).toBe(0);
  // The mode that the file may have after the folder was copied.
  chmodSync(folder.file(".plantstore/token"), 0o644);
  await using second = await startDemo(folder);
  const ids = [...second.server.stdout().matchAll(/(?:\/plants\/|"id":")(\d+)/g)].map(([, id = ""]) => id);
  expect(ids).toEqual(["2", "4", "5"]);
  const mode = statSync(folder.file(".plantstore/token")).mode & 0o777;
  expect({ token: second.token, mode }).toEqual({ token: first.token, mode: 0o600 });
  expect(await deletePlant(second.baseUrl, 1, first.token)).toBe(400);
  expect(await deletePlant(second.baseUrl, 2, first.token)).toBe(204);
  expect(await second.server.stop("SIGTERM")).toBe(0);
  expect(second.server.stderr()).not.toContain('"msg":"call"');
});
