import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { runSql, serverOwner } from "../../support/plants/postgres-server.ts";
import { freePort, killProcessTree, signalProcessTree } from "@protoport/testing";

export interface CitusNode {
  readonly port: number;
  /** The server's first process, which is the parent of all others. */
  readonly pid: number;
  readonly url: string;
  start(): Promise<void>;
  kill(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Adds a setting to the server's configuration, and restarts the server, so that every process uses the setting. */
  configure(setting: string): Promise<void>;
}

export async function startNode(programs: string, folder: string, name: string): Promise<CitusNode> {
  const data = join(folder, name);
  const asOwner = { ...serverOwner(), cwd: folder, env: { ...process.env, LC_ALL: "C" } };
  const args = ["-D", data, "-A", "trust", "-U", "tester", "-N", "-E", "UTF8"];
  // PostgreSQL has no version for the collation C.
  args.push("--locale-provider=icu", "--icu-locale=und");
  execFileSync(join(programs, "initdb"), args, { ...asOwner, stdio: "ignore" });
  const port = await freePort();
  const url = `postgres:///postgres?host=127.0.0.1&port=${port}&user=tester`;
  const ownInfo = "citus.node_conninfo=sslmode=disable";
  const settings = ["shared_preload_libraries=citus", "listen_addresses=127.0.0.1", ownInfo];
  const limits = ["max_connections=100", "max_prepared_transactions=200", "shared_buffers=64MB", "max_wal_size=4GB"];
  const options = [...settings, ...limits].flatMap((setting) => ["-c", setting]);
  let server: ChildProcess;

  const start = async (): Promise<void> => {
    server = spawn(join(programs, "postgres"), ["-D", data, "-p", String(port), "-k", folder, ...options], {
      ...asOwner,
      stdio: ["ignore", "ignore", "pipe"],
    });
    await isReady(server);
  };
  const signal = (signalName: NodeJS.Signals): void => {
    if (server.pid !== undefined) signalProcessTree(server.pid, signalName);
  };
  const kill = async (): Promise<void> => {
    const { pid, exitCode, signalCode } = server;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const ended = once(server, "exit");
    await killProcessTree(pid);
    await ended;
  };
  const configure = async (setting: string): Promise<void> => {
    await runSql(url, `ALTER SYSTEM ${setting}`);
    await kill();
    await start();
  };
  await start();
  return {
    port,
    get pid() {
      return server.pid ?? 0;
    },
    url,
    start,
    kill,
    signal,
    configure,
  };
}

async function isReady(server: ChildProcess): Promise<void> {
  const log: string[] = [];
  await new Promise<void>((resolve, reject) => {
    if (server.stderr === null) return reject(new Error("PostgreSQL has no log"));
    const lines = createInterface(server.stderr);
    lines.on("line", (line) => {
      log.push(line);
      if (line.includes("database system is ready to accept")) resolve();
    });
    lines.on("close", () => reject(new Error(`PostgreSQL did not start:\n${log.join("\n")}`)));
  });
}
