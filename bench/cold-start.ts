import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { buildPrograms } from "./build.ts";
import type { StartFigures } from "../protoport/bench/figures.ts";
import { usageOf } from "../protoport/bench/native-process.ts";
import { replyLimitMs } from "../protoport/bench/running-server.ts";
import { median } from "../protoport/bench/summary.ts";

/** Number of measured starts of each program. An additional first start fills the file and code caches. */
const starts = 11;

/** Pause between two starts, in ms, in which the processes of the last start exit. */
const pauseMs = 50;

/** The folder with the peers, which `npm ci --prefix bench/peers` installs. */
const peers = join(import.meta.dirname, "peers");

/** A program that is started as by a user, without any bench code in its process. */
interface Program {
  readonly name: string;
  /** The node arguments. */
  readonly words: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

/** The time and resources of one start. */
interface Start {
  readonly ms: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
}

/**
 * Measures how long programs take from process start to the response to their first call, which is DeletePlant as
 * Connect JSON. The figures are medians, and the starts of all programs alternate. The first program is the floor.
 */
export async function measureColdStarts(): Promise<readonly StartFigures[]> {
  const { command, programOf } = buildPrograms();
  const folder = mkdtempSync(join(tmpdir(), "plantstore-bench-"));
  const { serve, token } = prepareCommand(command, folder);
  const programs: readonly Program[] = [
    { name: "node:http", words: [programOf("node-http")], environment: {} },
    { name: "@protoport/gateway", words: [programOf("gateway")], environment: {} },
    { name: "connect-node", words: [programOf("connect-node")], environment: {} },
    ...(existsSync(join(peers, "node_modules"))
      ? [{ name: "fastify", words: [join(peers, "start-fastify.mjs")], environment: {} }]
      : []),
    serve,
  ];
  const startsByProgram = new Map<Program, Start[]>(programs.map((program) => [program, []]));
  // The store has a plant for each start, so that each call deletes a plant.
  for (let plant = 0; plant <= starts; plant += 1) {
    for (const program of programs) {
      const start = await startOnce(program, token, plant);
      if (plant > 0) startsByProgram.get(program)?.push(start);
      await delay(pauseMs);
    }
  }
  rmSync(folder, { recursive: true });
  return toFigures([...startsByProgram]);
}

/** Prepares a store in a file, a token and a folder for compiled code. Returns the program that serves the store. */
function prepareCommand(command: string, folder: string): { readonly serve: Program; readonly token: string } {
  const environment = {
    TMPDIR: folder,
    DATABASE_URL: `sqlite:${join(folder, "plants.db")}`,
    PLANTSTORE_TOKEN_HASHES_FILE: join(folder, "token-hashes"),
    PLANTSTORE_DRAIN_DELAY_MS: "0",
    PORT: "0",
  };
  const run = (input: string, ...words: readonly string[]): string =>
    execFileSync(process.execPath, [command, ...words], {
      env: { ...process.env, ...environment },
      input,
      stdio: "pipe",
    }).toString();
  const plants = Array.from({ length: starts + 1 }, (_, plant) => `${String(plant)}\n`);
  run("", "migrate");
  run(plants.join(""), "import");
  const token = run("", "token", "create", "bench").trim();
  return { serve: { name: "plantstore serve", words: [command, "serve"], environment }, token };
}

async function startOnce({ name, words, environment }: Program, token: string, plant: number): Promise<Start> {
  const startedMs = performance.now();
  const child = spawn(process.execPath, words, {
    env: { ...process.env, NODE_ENV: "production", ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const limit = setTimeout(() => child.kill("SIGKILL"), replyLimitMs);
  const status = await callOnce(await portOf(child), token, plant);
  const ms = performance.now() - startedMs;
  if (status !== 200) throw new Error(`${name} responded with status ${String(status)}`);
  const start = { ms, cpuMs: cpuMsOf(child.pid), rssBytes: usageOf(child.pid).rssBytes };
  const exited = once(child, "exit");
  child.kill();
  await exited;
  clearTimeout(limit);
  return start;
}

/** Returns the port that a program prints to standard error. Rejects when the program exits first. */
async function portOf({ stderr }: ChildProcess): Promise<number> {
  if (stderr === null) throw new Error("the program has no standard error");
  const lines: string[] = [];
  for await (const line of createInterface(stderr)) {
    const port = /\bport\W+(\d+)/.exec(line)?.[1];
    if (port !== undefined) return Number(port);
    lines.push(line);
  }
  throw new Error(`the program exited before it listened: ${lines.join("\n")}`);
}

/** Deletes a plant, and returns the HTTP status. */
async function callOnce(port: number, token: string, plant: number): Promise<number | undefined> {
  const call = request({
    port,
    host: "127.0.0.1",
    path: "/plantstore.v1.PlantService/DeletePlant",
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "connect-protocol-version": "1",
    },
    agent: false,
  });
  call.end(JSON.stringify({ id: String(plant) }));
  const [response]: IncomingMessage[] = await once(call, "response");
  response?.resume();
  return response?.statusCode;
}

/**
 * Returns the CPU time in ms that a process's threads have used. The process's total time in /proc has a resolution of
 * only 10 ms.
 */
function cpuMsOf(pid: number | undefined): number {
  const threads = `/proc/${String(pid)}/task`;
  // A task's first figure in schedstat is its time on a CPU, in ns (Documentation/scheduler/sched-stats.rst).
  const timesNs = readdirSync(threads).map((thread) =>
    Number.parseInt(readFileSync(join(threads, thread, "schedstat"), "latin1"), 10),
  );
  return timesNs.reduce((sum, ns) => sum + ns, 0) / nsPerMs;
}

const nsPerMs = 1e6;

function toFigures(programs: readonly (readonly [Program, readonly Start[]])[]): readonly StartFigures[] {
  const medians = programs.map(([{ name }, all]) => ({
    name,
    ms: median(all.map(({ ms }) => ms)),
    cpuMs: median(all.map(({ cpuMs }) => cpuMs)),
    rssBytes: median(all.map(({ rssBytes }) => rssBytes)),
  }));
  const [floor] = medians;
  return medians.map((each) => ({
    ...each,
    timesFloor: each.ms / (floor?.ms ?? Number.NaN),
    rssTimesFloor: each.rssBytes / (floor?.rssBytes ?? Number.NaN),
  }));
}
