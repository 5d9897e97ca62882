import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { runSql, serverOwner } from "../support/plants/postgres-server.ts";
import { citusBuild, programsFolder } from "./build.ts";

/** A coordinator and two workers of a test's own, on ports of 127.0.0.1. */
export interface CitusCluster extends AsyncDisposable {
  /** The URLs of the workers, for a look at what is on them. */
  readonly workers: readonly string[];
  /** The URL of an empty schema, new with every call, whose tables are spread over so many shards. */
  createSchema(shards?: number): Promise<string>;
}

/**
 * Starts a cluster.
 *
 * @throws Error when Citus was not built
 */
export async function startCitus(): Promise<CitusCluster> {
  const built = citusBuild();
  if (built === undefined) throw new Error("Citus is not there: build it by `node test/citus/build.ts`");
  const folder = mkdtempSync(join(tmpdir(), "plantstore-citus-"));
  // Whoever runs the servers may not read the home of whoever runs the tests.
  cpSync(join(built, "usr"), join(folder, "usr"), { recursive: true, verbatimSymlinks: true });
  const programs = join(folder, programsFolder);
  const owner = serverOwner();
  if (owner !== undefined) execFileSync("chown", [`${owner.uid}:${owner.gid}`, folder]);
  const nodes = await Promise.all(
    ["coordinator", "worker-1", "worker-2"].map((name) => startNode(programs, folder, name)),
  );
  const [coordinator = { port: 0 }, ...workers] = nodes;
  for (const { url } of nodes) await runSql(url, "CREATE EXTENSION citus");
  const url = urlOf(coordinator.port);
  await runSql(url, `SELECT citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`);
  for (const { port } of workers) await runSql(url, `SELECT citus_add_node('127.0.0.1', ${port})`);
  let schemas = 0;
  return {
    workers: workers.map((worker) => worker.url),
    createSchema: async (shards = 8) => {
      const name = `plants_${++schemas}`;
      await runSql(url, `CREATE SCHEMA ${name}`);
      return `${url}&options=${encodeURIComponent(`-csearch_path=${name} -ccitus.shard_count=${shards}`)}`;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(nodes.map(({ server }) => stop(server)));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Node {
  readonly port: number;
  readonly url: string;
  readonly server: ChildProcess;
}

async function startNode(programs: string, folder: string, name: string): Promise<Node> {
  const data = join(folder, name);
  const asOwner = { ...serverOwner(), cwd: folder, env: { ...process.env, LC_ALL: "C" } };
  const args = ["-D", data, "-A", "trust", "-U", "tester", "-N", "-E", "UTF8"];
  execFileSync(join(programs, "initdb"), args, { ...asOwner, stdio: "ignore" });
  const port = await freePort();
  const settings = [
    "shared_preload_libraries=citus",
    "listen_addresses=127.0.0.1",
    "citus.node_conninfo=sslmode=disable",
  ];
  const limits = ["max_connections=100", "max_prepared_transactions=200", "shared_buffers=64MB", "max_wal_size=4GB"];
  const options = [...settings, ...limits].flatMap((setting) => ["-c", setting]);
  const server = spawn(join(programs, "postgres"), ["-D", data, "-p", String(port), "-k", folder, ...options], {
    ...asOwner,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const log: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const lines = createInterface(server.stderr);
    lines.on("line", (line) => {
      log.push(line);
      if (line.includes("database system is ready to accept")) resolve();
    });
    lines.on("close", () => reject(new Error(`PostgreSQL did not start:\n${log.join("\n")}`)));
  });
  return { port, url: urlOf(port), server };
}

function urlOf(port: number): string {
  return `postgres:///postgres?host=127.0.0.1&port=${port}&user=tester`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null) return;
  server.kill("SIGQUIT");
  await once(server, "exit");
}
