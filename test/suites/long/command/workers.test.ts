import { shared } from "../../../../protoport/testing/src/shared.ts";
import { runSql, startPostgres } from "../../../support/plants/postgres-server.ts";
import { runCommand, startCommandLine } from "../../../support/process/index.ts";
import { startOnLoopback } from "@protoport/testing/http";
// oxfmt-ignore
import { type CommandLine, createTempFolder, projectFolder, signalAtLoad, startNode, type TempFolder, within
} from "@protoport/testing/process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";

const token = "token-of-the-workers-test";
const postgres = shared(() => startPostgres());

/** Starts three workers with plants 1 to 100, and waits until all of them, or some, listen. */
async function serve(
  folder: TempFolder,
  drainDelayMs: number = 0,
  environment: Readonly<Record<string, string>> = {},
  nodeFlags: readonly string[] = [],
  listening = 3,
): Promise<{ server: CommandLine; baseUrl: string; database: string }> {
  const database = await postgres.createSchema();
  const ids = Array.from({ length: 100 }, (_, index) => String(index + 1));
  await runCommand(["migrate"], { DATABASE_URL: database });
  await runCommand(["import"], { DATABASE_URL: database }, ids.join("\n"));
  const main = join(projectFolder, "src/command/main.ts");
  const server = startNode([...nodeFlags, main, "serve", "--workers", "3"], folder.path, {
    PORT: "0",
    DATABASE_URL: database,
    PLANTSTORE_TOKENS: token,
    PLANTSTORE_DRAIN_DELAY_MS: String(drainDelayMs),
    ...environment,
  });
  const [, port = ""] = await server.find(/"port":(\d+),"protocols"/);
  await findListening(server, listening);
  return { server, baseUrl: `http://127.0.0.1:${port}`, database };
}

/** Waits until workers have listened, for one line after the other, because the first worker starts first. */
async function findListening(server: CommandLine, times: number): Promise<void> {
  for (let each = 1; each <= times; each++) await server.find(repeatedMessage("listening", each));
}

const repeatedMessage = (message: string, times: number) => new RegExp(`(?:"msg":"${message}"(?:.|\\n)*){${times}}`);

/** Returns the URL for all workers' metrics, and a function that scrapes them. */
async function metricsOf(server: CommandLine): Promise<{ url: string; scrape: () => Promise<string> }> {
  const [, port] = await server.find(/"port":(\d+),"msg":"serving metrics"/);
  const url = `http://127.0.0.1:${port}`;
  return { url, scrape: async () => await (await fetch(`${url}/metrics`)).text() };
}

/** Deletes a plant over a new connection, so that any worker can get it. */
async function deletePlant(baseUrl: string, id: number): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, connection: "close" };
  const { status, body } = await fetch(`${baseUrl}/plants/${id}`, { method: "DELETE", headers });
  await body?.cancel();
  return status;
}

test("workers that are still starting at SIGTERM are drained too", async () => {
  using folder = createTempFolder();
  // Orders reach the others before they wait for orders.
  const waits = `import cluster from "node:cluster";
    if (cluster.isWorker) await new Promise((resolve) => setTimeout(resolve, 1_000));`;
  const { server } = await serve(folder, 0, {}, [`--import=data:text/javascript,${encodeURIComponent(waits)}`], 1);
  await using running = server;
  running.process.kill("SIGTERM");
  expect(await within(running.end(), "the exit")).toBe(0);
});

test("workers share a port, reload on SIGHUP, and delete every plant once", async () => {
  using folder = createTempFolder();
  const { server, baseUrl, database } = await serve(folder);
  await using running = server;
  const requests = Array.from({ length: 200 }, (_, index) => deletePlant(baseUrl, (index % 100) + 1));
  expect((await Promise.all(requests)).filter((status) => status === 204)).toHaveLength(100);
  expect(await runSql(database, "SELECT count(*)::int AS plants FROM plants")).toEqual([{ plants: 0 }]);
  server.process.kill("SIGHUP");
  await server.find(repeatedMessage("reloading", 3));
  expect(await running.stop("SIGTERM")).toBe(0);
  expect(server.stderr().match(/"msg":"(?:reloading|stopped)"/g)).toHaveLength(6);
  expect(server.stderr()).not.toContain("is being replaced");
});

test("workers run with their supervisor's Node flags", async () => {
  using folder = createTempFolder();
  const flag = "--max-semi-space-size=16";
  const { server } = await serve(folder, 0, {}, [flag]);
  await using _ = server;
  const pids = [...server.stderr().matchAll(/"pid":(\d+),"address"/g)].map(([, pid = ""]) => pid);
  const commands = pids.map((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0"));
  expect(commands).toHaveLength(3);
  for (const command of commands) expect(command).toContain(flag);
});

test("workers drain and exit when their supervisor is killed", async () => {
  using folder = createTempFolder();
  const { server } = await serve(folder);
  await using running = server;
  server.process.kill("SIGKILL");
  // The workers share the output, so it ends when the last worker exits.
  expect(await running.end()).toBe(null);
  expect(server.stderr().match(/"msg":"stopped"/g)).toHaveLength(3);
});

test("SIGHUP before workers are started reloads the first worker when it listens", async () => {
  using folder = createTempFolder();
  // Workers do not load this module, so that only the supervisor gets the signal.
  const { server } = await serve(folder, 0, signalAtLoad("SIGHUP", "/command/supervise.ts"));
  await using _ = server;
  await server.find(/"msg":"reloading"/);
  expect(server.stderr()).not.toContain("is being replaced");
});

test("SIGHUP does not stop a supervisor while its first worker starts", async () => {
  using folder = createTempFolder();
  // The server reads, because otherwise it would not detect that the client closes the connection.
  const silent = createServer((socket) => socket.resume());
  const connected = within(once(silent, "connection"), "a connection to the database");
  await using database = await startOnLoopback(silent);
  const { port } = database.address;
  const environment = { PORT: "0", DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/none`, PLANTSTORE_TOKENS: token };
  await using server = startCommandLine(["serve", "--workers", "2"], folder.path, environment);
  await connected;
  for (const signal of ["SIGHUP", "SIGTERM", "SIGINT"] as const) server.process.kill(signal);
  // Exit code 1 is caused by the second stop signal, not by SIGHUP.
  expect(await server.end()).toBe(1);
});

test("a killed worker is replaced, except after a stop signal", async () => {
  using folder = createTempFolder();
  const { server, baseUrl } = await serve(folder);
  await using running = server;
  const killOne = async (): Promise<void> => {
    const pids = [...server.stderr().matchAll(/"pid":(\d+),"address"/g)].map(([, pid]) => pid);
    // Without a pid this is NaN, which kill() refuses. 0 would kill this test's process group.
    const pid = Number(pids.at(-1));
    process.kill(pid, "SIGKILL");
    await server.find(
      new RegExp(`"errorCode":"ERR_WORKER_EXITED","pid":${pid}.*a worker exited and is being replaced`),
    );
  };
  await killOne();
  await server.find(repeatedMessage("listening", 4));
  expect(await deletePlant(baseUrl, 1)).toBe(204);
  await killOne();
  expect(await running.stop("SIGTERM")).toBe(0);
});

test("one address serves every worker's metrics, and replacements keep the slot", async () => {
  using folder = createTempFolder();
  const { server, baseUrl } = await serve(folder, 0, { PLANTSTORE_ADMIN_ADDRESS: "0" });
  await using running = server;
  const { scrape } = await metricsOf(server);
  expect(await scrape()).toMatch(/^plantstore_workers 3$/m);
  const statuses = Array.from({ length: 30 }, (_, index) => deletePlant(baseUrl, index + 1));
  expect(new Set(await Promise.all(statuses))).toEqual(new Set([204]));
  const text = await scrape();
  expect(text.match(/^gateway_ready\{worker="[123]"\} 1$/gm)).toHaveLength(3);
  const deleted = [...text.matchAll(/^plantstore_delete_batch_size_sum\{worker="[123]"\} (\d+)$/gm)];
  expect(deleted.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(30);
  // Prometheus rejects a metric that is described more than once.
  expect(text.match(/^# TYPE gateway_ready /gm)).toHaveLength(1);
  const [, pid] = /"pid":(\d+),"address"/.exec(server.stderr()) ?? [];
  process.kill(Number(pid), "SIGKILL");
  await server.find(repeatedMessage("listening", 4));
  await expect.poll(scrape).toMatch(/^plantstore_workers 3$/m);
  const slots = [...(await scrape()).matchAll(/^gateway_ready\{worker="(\d)"\} 1$/gm)].map(([, slot]) => slot);
  expect(new Set(slots)).toEqual(new Set(["1", "2", "3"]));
  expect(await running.stop("SIGTERM")).toBe(0);
});

test("concurrent scrapes share one collection from the workers", async () => {
  using folder = createTempFolder();
  const { server } = await serve(folder, 0, { PLANTSTORE_ADMIN_ADDRESS: "0" });
  await using running = server;
  const { url, scrape } = await metricsOf(server);
  const [, pid = ""] = await server.find(/"pid":(\d+),"address"/);
  await scrape();
  // A stopped worker does not respond.
  process.kill(Number(pid), "SIGSTOP");
  const first = scrape();
  const others = Array.from({ length: 20 }, scrape);
  // The response to this request comes after all scrapes have begun.
  await fetch(`${url}/nothing`);
  process.kill(Number(pid), "SIGCONT");
  expect(new Set(await Promise.all(others))).toEqual(new Set([await first]));
  expect(await running.stop("SIGTERM")).toBe(0);
});

test("the command starts no workers if the admin address is in use", async () => {
  using folder = createTempFolder();
  await using other = await startOnLoopback(createServer());
  const { port: usedPort } = other.address;
  await using server = startCommandLine(["serve", "--workers", "2"], folder.path, {
    PORT: "0",
    DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
    PLANTSTORE_TOKENS: token,
    PLANTSTORE_ADMIN_ADDRESS: String(usedPort),
  });
  expect(await server.end()).toBe(1);
  const want = `cannot listen on PLANTSTORE_ADMIN_ADDRESS: port ${usedPort} of 127.0.0.1 is in use`;
  expect(server.stderr()).toContain(want);
});

test("draining workers serve metrics, and a second signal kills them immediately", async () => {
  using folder = createTempFolder();
  const { server } = await serve(folder, 60_000, { PLANTSTORE_ADMIN_ADDRESS: "0" });
  await using running = server;
  server.process.kill("SIGTERM");
  await server.find(repeatedMessage("draining", 3));
  const { scrape } = await metricsOf(server);
  expect(await scrape()).toMatch(/^plantstore_workers 3$/m);
  expect(await running.stop("SIGINT")).toBe(1);
  expect(server.stderr()).not.toContain('"msg":"stopped"');
});

test("the command exits with the first worker's code if none starts", async () => {
  using folder = createTempFolder();
  const database = await postgres.createSchema();
  const environment = { PORT: "0", DATABASE_URL: database, PLANTSTORE_TOKENS: token };
  await using server = startCommandLine(["serve", "--workers", "2"], folder.path, environment);
  expect(await server.end()).toBe(1);
  expect(server.stderr()).toContain("plantstore migrate");
});

test("workers share a Unix socket, and remove it when they stop", async () => {
  using folder = createTempFolder();
  const socketPath = folder.file("plants.sock");
  const store = { DATABASE_URL: await postgres.createPlants([1n]), PLANTSTORE_TOKENS: token };
  const environment = { HOST: `unix:${socketPath}`, ...store };
  await using server = startCommandLine(["serve", "--workers", "2"], folder.path, environment);
  await findListening(server, 2);
  expect(statSync(socketPath).mode & 0o777).toBe(0o660);
  for (let each = 1; each <= 4; each++) {
    const [response]: IncomingMessage[] = await once(get({ socketPath, path: "/readyz", agent: false }), "response");
    response?.resume();
    expect(response?.statusCode).toBe(200);
  }
  expect(await server.stop("SIGTERM")).toBe(0);
  expect(existsSync(socketPath)).toBe(false);
});

test.each([
  { name: "the port is in use", host: "127.0.0.1", want: "cannot listen on PORT: port 1 of 127.0.0.1 is in use" },
  { name: "the host is foreign", host: "192.0.2.1", want: 'it must be an address of this machine, got "192.0.2.1"' },
])("the command exits with 1 and names the setting if $name", async ({ host, want }) => {
  using folder = createTempFolder();
  await using other = await startOnLoopback(createServer());
  const port = String(other.address.port);
  const flags = ["--workers", "2", "--host", host, "--port", port];
  await using server = startCommandLine(["serve", ...flags], folder.path, {
    DATABASE_URL: await postgres.createPlants([1n]),
    PLANTSTORE_TOKENS: token,
  });
  expect(await server.end()).toBe(1);
  expect(server.stderr()).toContain(want.replace("port 1", `port ${port}`));
});

test("the command refuses workers in another program's cluster", async () => {
  using folder = createTempFolder();
  const main = JSON.stringify(join(projectFolder, "src/command/main.ts"));
  const program = `
    import cluster from "node:cluster";
    cluster.setupPrimary({ exec: ${main}, args: ["serve", "--workers", "2"] });
    cluster.fork();`;
  const environment = { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none", PLANTSTORE_TOKENS: token };
  await using server = startNode([folder.write("start.mjs", program)], folder.path, environment);
  await server.find(/PLANTSTORE_WORKERS must be 1 in a cluster of Node\.js/);
});

const worker = `
  import { createServer } from "node:net";
  process.on("message", (order) => { if (order === "drain") process.exit(); });
  createServer().listen(0, "127.0.0.1", () => console.log("worker " + process.pid));`;

/** Starts a supervisor with two workers, which run the Node.js at the path `node`. */
function supervise(folder: TempFolder, node: string): CommandLine {
  const program = folder.file("worker.mjs");
  writeFileSync(program, worker);
  return startNode([join(projectFolder, "test/support/process/supervise.ts"), program, node], folder.path);
}

test("a supervisor retries until the system can start a worker's process", async () => {
  using folder = createTempFolder();
  const node = folder.file("node");
  symlinkSync(process.execPath, node);
  await using supervisor = supervise(folder, node);
  const [, pid] = await supervisor.find(/worker (\d+)\n(?:.*\n)*worker \d+\n/);
  rmSync(node);
  process.kill(Number(pid), "SIGKILL");
  await supervisor.find(/"ERR_WORKER_EXITED","cause":"Error: spawn .* ENOENT","msg":"a worker could not be started/);
  const [, port] = await supervisor.find(/"port":(\d+),"msg":"serving metrics"/);
  const problems: object = JSON.parse(await (await fetch(`http://127.0.0.1:${port}/problems`)).text());
  expect(Object.keys(problems).toSorted()).toEqual(["process of worker 1", "process of worker 2"]);
  symlinkSync(process.execPath, node);
  await supervisor.find(/(?:worker \d+\n(?:.*\n)*){3}/);
  expect(await supervisor.stop("SIGTERM")).toBe(0);
});

test("a supervisor exits if the system cannot start the first worker's process", async () => {
  using folder = createTempFolder();
  await using supervisor = supervise(folder, folder.file("missing-node"));
  expect(await supervisor.end()).toBe(1);
  expect(supervisor.stderr()).toMatch(/Error: spawn .*missing-node ENOENT/);
  expect(supervisor.stderr()).not.toContain("Unhandled 'error' event");
});
