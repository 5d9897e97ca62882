import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createHttp1Exchange, readCases, readKnownFailing, type Result, run } from "../runner/index.ts";
import { pictureOf } from "./picture.ts";
import { backends, type Server, servers } from "./servers.ts";
import { tableOf } from "./table.ts";

// `node protoport/conformance/servers/main.ts [ID...]` builds and starts the servers in servers.ts, runs all cases
// against each server, and prints the table. The run fails if a list of known failures is out of date. `--record`
// writes the lists of known failures, the table in the README.md in this folder, and the table's picture. The run
// requires the servers' compilers, such as Go.

const project = join(import.meta.dirname, "../../..");
const environment = { ...process.env, PATH: `${join(project, "node_modules/.bin")}:${process.env["PATH"] ?? ""}` };

/** Timeout for a case on a busy machine, in ms. */
const timeoutMs = 15_000;

/**
 * Returns the folder in which a server is built, outside the checkout. The folder is kept, so that later builds are
 * faster.
 */
function folderOf({ folder }: Server): string {
  if (folder === undefined) return project;
  const copy = join(tmpdir(), `transcoding-${folder}`);
  mkdirSync(copy, { recursive: true });
  cpSync(join(import.meta.dirname, folder), copy, { recursive: true, preserveTimestamps: true });
  const modules = {
    version: "v2",
    modules: [{ path: "protoport/conformance/proto" }, { path: "protoport/gateway/proto" }],
  };
  const contract = ["--path", "protoport/conformance/proto/transcoding", "-o", join(copy, "echo.binpb")];
  call(["buf", "build", "--config", JSON.stringify(modules), ...contract], project);
  return copy;
}

function call([file = "", ...args]: readonly string[], folder: string): void {
  execFileSync(file, args, { cwd: folder, env: environment, stdio: ["ignore", "ignore", "inherit"] });
}

/** Finds a free port for which the next port is free, too. */
async function freePort(): Promise<number> {
  const port = await listenOn(0);
  return (await listenOn(port + 1).catch(() => 0)) === 0 ? freePort() : port;
}

async function listenOn(port: number): Promise<number> {
  const probe = createServer().listen(port, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  return address === null || typeof address === "string" ? 0 : address.port;
}

async function measure(server: Server): Promise<readonly Result[]> {
  const folder = folderOf(server);
  for (const step of server.build) call(step, folder);
  const port = await freePort();
  const [file = "", ...args] = server.start.map((arg) =>
    arg
      .replace("PORT", String(port))
      .replace("BACKEND", String(port + 1))
      .replace("PROJECT", project),
  );
  let child: ChildProcess | undefined;
  let isOver = false;
  // A server that exits is restarted, so that the cases after the exit can run.
  const start = (): void => {
    child = spawn(file, args, { cwd: folder, env: environment, stdio: "ignore" });
    child.on("exit", () => void setTimeout(() => isOver || start(), restartPauseMs));
  };
  start();
  try {
    const exchange = createHttp1Exchange(new URL(`http://127.0.0.1:${port}`));
    await untilServed(() => exchange({ method: "GET", target: "/v1/query" }, timeoutMs));
    const known = knownFailuresOf(server);
    const knownFailing = existsSync(known) ? readKnownFailing(readFileSync(known, "utf8")) : [];
    const results: Result[] = [];
    const options = { exchange, timeoutMs, without: server.without, knownFailing };
    for await (const result of run(readCases(), options)) results.push(result);
    return results;
  } finally {
    isOver = true;
    child?.kill();
  }
}

/** Timeout for a server's start, in ms. */
const startLimitMs = 60_000;

/** Milliseconds before a server is restarted, and between two checks whether a server serves. */
const restartPauseMs = 100;

async function untilServed(sendRequest: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + startLimitMs;
  while (performance.now() < until) {
    try {
      await sendRequest();
      return;
    } catch {
      await pause(restartPauseMs);
    }
  }
  throw new Error(`the server did not respond within ${startLimitMs} ms`);
}

function knownFailuresOf({ id }: Server): string {
  return join(import.meta.dirname, "known-failing", `${id}.txt`);
}

function record(server: Server, results: readonly Result[]): void {
  const lines = results.flatMap(({ case: { id, level }, problems }) =>
    problems.length === 0 ? [] : [`${id} # ${level}: ${(problems[0] ?? "").replaceAll(/\s+/g, " ").slice(0, 150)}\n`],
  );
  mkdirSync(join(import.meta.dirname, "known-failing"), { recursive: true });
  writeFileSync(knownFailuresOf(server), lines.join(""));
}

const names = process.argv.slice(2).filter((name) => name !== "--record");
const isRecording = process.argv.includes("--record");
const everyServer = [...servers, ...backends];
const unknown = names.filter((name) => everyServer.every(({ id }) => id !== name));
if (unknown.length > 0) throw new Error(`unknown server ${unknown.map((name) => `"${name}"`).join(" or ")}`);
const measured: { readonly server: Server; readonly results: readonly Result[] }[] = [];
for (const server of everyServer.filter(({ id }) => names.length === 0 || names.includes(id))) {
  const results = await measure(server);
  measured.push({ server, results });
  if (isRecording) record(server, results);
  const wrong = results
    .filter(({ outcome }) => outcome === "fixed" || outcome === "fail")
    .map(({ case: { id } }) => id);
  if (!isRecording && wrong.length > 0) {
    process.stderr.write(`${server.name}: known-failing/${server.id}.txt is out of date for ${wrong.join(", ")}\n`);
    process.exitCode = 1;
  }
}
process.stdout.write(tableOf(measured));
if (isRecording && names.length === 0) {
  const shown = measured.filter(({ server }) => servers.includes(server));
  const readme = join(import.meta.dirname, "README.md");
  const text = readFileSync(readme, "utf8");
  writeFileSync(
    readme,
    text.replace(/(?<=<!-- table -->\n).*?(?=<!-- \/table -->)/s, () => `\n${tableOf(shown)}\n`),
  );
  writeFileSync(join(project, "protoport/docs/pictures/transcoding.svg"), pictureOf(shown));
}
