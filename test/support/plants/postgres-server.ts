import { execFileSync, spawn, type ChildProcess } from "node:child_process";
// oxfmt-ignore
import { appendFileSync, cpSync, existsSync, mkdtempSync, renameSync, rmSync, statfsSync, writeFileSync
} from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, type ClientConfig } from "pg";
import { tablesSql } from "../../../src/stores/postgres/schema/store-schema.ts";
import type { Certificate } from "../../../protoport/testing/src/http/certificate.ts";
import { killProcessTree, signalProcessTree } from "../../../protoport/testing/src/process/kill-process-tree.ts";
import { toolsFolder } from "../../../protoport/testing/src/process/tools-folder.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { closeConnection, giveBackConnection, keepConnection, takeConnection } from "./sql-connection.ts";

/** A separate PostgreSQL server for a test, on a Unix socket. */
export interface PostgresServer extends AsyncDisposable {
  readonly socketFolder: string;
  readonly log: readonly string[];
  /** Creates an empty schema, which is as isolated as a database and a hundred times as fast to create. */
  createSchema(): Promise<string>;
  /**
   * Creates a schema with the tables that `migrate` creates and with these plants. Returns the URL. One script creates
   * the schema, in a quarter of a migration's time. `test/stores/postgres/schema/migrate.test.ts` compares
   * both.
   */
  createPlants(ids?: readonly bigint[]): Promise<string>;
  /** Stops the server. `immediate` is a crash that it notices. `kill` sends SIGKILL to all its processes. */
  stop(mode: "fast" | "immediate" | "kill"): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Starts the server again, unless it runs. */
  start(): Promise<void>;
}

/** Creates a store with these plants, and returns its URL for a separate role, which identifies its backends. */
export async function createPlantsFor(server: PostgresServer, role: string, ids: readonly bigint[]): Promise<string> {
  const url = await server.createPlants(ids);
  await runSql(url, `CREATE ROLE ${role} LOGIN SUPERUSER`);
  return url.replace("user=tester", `user=${role}`);
}

/** Runs SQL on a separate connection that has no state from earlier SQL. */
export async function runSql(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const config = configOf(url);
  const client = await takeConnection(config);
  try {
    return (await client.query(sql)).rows;
  } finally {
    await giveBackConnection(config, client);
  }
}

/** Opens a connection and runs SQL on it, such as the beginning of a transaction, which ends with the connection. */
export async function openClient(url: string, sql: string): Promise<Client> {
  // Queries report errors themselves, and errors on an idle connection are ignored.
  const client = new Client(configOf(url)).on("error", () => undefined);
  await client.connect();
  await client.query(sql);
  return client;
}

/** Runs `work` while every commit on the server waits for a standby that does not exist. */
export async function withoutStandby<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  try {
    await runSql(url, "SELECT pg_reload_conf()");
    await waitUntilCommitsWait(url);
    return await work();
  } finally {
    await runSql(url, "ALTER SYSTEM RESET synchronous_standby_names");
    await runSql(url, "SELECT pg_reload_conf()");
  }
}

/** Waits until the checkpointer has read the setting, because commits wait from then on. */
async function waitUntilCommitsWait(url: string): Promise<void> {
  for (let waited = false; !waited;) {
    const commit = { done: false };
    const committed = runSql(url, "SELECT pg_logical_emit_message(true, 'waits', ''), 'until commits wait'").finally(
      () => {
        commit.done = true;
      },
    );
    while (!commit.done) {
      const mine = "query LIKE '%until commits wait%' AND pid <> pg_backend_pid() AND wait_event = 'SyncRep'";
      const cancelled = await runSql(url, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ${mine}`);
      waited ||= cancelled.length > 0;
    }
    await committed;
  }
}

/** Cancels all waits for standbys, as an operator does. The server then commits. Returns a row for each. */
export const cancelWaitsForStandby = (url: string): Promise<unknown[]> =>
  runSql(url, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");

/** Returns the URL with `repeatable read` as the default isolation. */
export function withStrictIsolation(url: string): string {
  const option = encodeURIComponent(String.raw`-cdefault_transaction_isolation=repeatable\ read `);
  return url.replace("options=", `options=${option}`);
}

/** Returns client options for a URL from {@link PostgresServer.createSchema}. */
export function configOf(url: string): ClientConfig {
  const { searchParams, pathname } = new URL(url);
  const parameter = (name: string): string => searchParams.get(name) ?? "";
  const [host, user, options] = ["host", "user", "options"].map(parameter);
  return { host, port: Number(parameter("port")), database: pathname.slice(1), user, options };
}

/** A TLS server's certificate and TCP port. */
export type PostgresTls = { readonly certificate: Certificate; readonly port: number };

export interface PostgresOptions {
  readonly tls?: PostgresTls;
  /** Whether the cluster must be on a disk, for measurements. */
  readonly onDisk?: boolean;
  readonly environment?: NodeJS.ProcessEnv;
}

/** Creates a database cluster and starts its server, on a Unix socket and, with TLS, on a port of 127.0.0.1. */
export async function startPostgres(
  settings: readonly string[] = [],
  { tls, onDisk = false, environment = {} }: PostgresOptions = {},
): Promise<PostgresServer> {
  const folder = createServerFolder(onDisk ? tmpdir() : fastFolder());
  createCluster(folder);
  const all = tls === undefined ? settings : [...settings, ...tlsSettings(folder, tls)];
  return await runServer(folder, all, { port: tls?.port, environment });
}

export type PostgresStandby = PostgresServer & { promote(): Promise<void> };

/** Creates a standby with this application name. The primary is stopped for a moment. */
export async function startStandby(primary: PostgresServer, name: string): Promise<PostgresStandby> {
  const folder = createServerFolder(fastFolder());
  const conninfo = `host=${primary.socketFolder} user=tester application_name=${name}`;
  await primary.stop("fast");
  cpSync(dataOf(primary.socketFolder), dataOf(folder), { recursive: true, preserveTimestamps: true });
  writeFileSync(join(dataOf(folder), "standby.signal"), "");
  // The query that promotes it would otherwise be canceled if the replay of the primary's last records waits for it.
  const delays = "max_standby_archive_delay = -1\nmax_standby_streaming_delay = -1\n";
  appendFileSync(join(dataOf(folder), "postgresql.auto.conf"), `primary_conninfo = '${conninfo}'\n${delays}`);
  giveToOwner(dataOf(folder));
  await primary.start();
  const standby = await runServer(folder);
  const promote = async (): Promise<void> => void (await runSql(urlOf(folder), "SELECT pg_promote()"));
  return { ...standby, promote };
}

/** Creates a cluster in a folder. Copies one that is cached per version, which takes a quarter of the time. */
function createCluster(folder: string): void {
  const version = execFileSync(binary("postgres"), ["--version"], { encoding: "utf8" });
  const kept = join(toolsFolder("postgres"), version.trim().replaceAll(/[^\w.]+/g, "-"));
  if (existsSync(kept)) {
    cpSync(kept, dataOf(folder), { recursive: true, preserveTimestamps: true });
    return giveToOwner(dataOf(folder));
  }
  runAsOwner(folder, "initdb", ["-D", dataOf(folder), "-A", "trust", "-U", "tester", "-N", "-E", "UTF8"]);
  const copy = mkdtempSync(`${kept}-`);
  cpSync(dataOf(folder), copy, { recursive: true, preserveTimestamps: true });
  try {
    renameSync(copy, kept);
  } catch {
    // Another process has cached its cluster first.
    rmSync(copy, { recursive: true });
  }
}

function createServerFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, "plantstore-pg-"));
  giveToOwner(folder);
  return folder;
}

// Bytes that a test's largest cluster needs, with ten million plants.
const memoryFreeMin = 4 * 2 ** 30;

/** Returns the folder for clusters, in memory if there is enough, because fsync gains nothing in a test. */
function fastFolder(): string {
  const memory = "/dev/shm";
  if (!existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= memoryFreeMin ? memory : tmpdir();
}

const dataOf = (folder: string): string => join(folder, "data");
const urlOf = (folder: string, port = 5432): string => `postgres:///postgres?host=${folder}&port=${port}&user=tester`;

function tlsSettings(folder: string, { certificate, port }: PostgresTls): string[] {
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(cert, certificate.cert);
  writeFileSync(key, certificate.key, { mode: 0o600 });
  giveToOwner(folder);
  const files = ["-c", `ssl_cert_file=${cert}`, "-c", `ssl_key_file=${key}`];
  return ["-c", "listen_addresses=127.0.0.1", "-p", String(port), "-c", "ssl=on", ...files];
}

const fastSettings = ["-c", "max_connections=50", "-c", "shared_buffers=32MB"];

/** Starts the cluster's server in this folder. The socket's name contains the port. */
async function runServer(
  folder: string,
  settings: readonly string[] = [],
  { port, environment }: { readonly port?: number | undefined; readonly environment?: NodeJS.ProcessEnv } = {},
): Promise<PostgresServer> {
  const url = urlOf(folder, port);
  const log: string[] = [];
  let server: ChildProcess | undefined;
  let schemas = 0;
  const isRunning = (): boolean => server !== undefined && server.exitCode === null && server.signalCode === null;

  const start = async (): Promise<void> => {
    if (isRunning()) return;
    const socket = ["-k", folder, "-c", "listen_addresses="];
    const args = ["-D", dataOf(folder), ...socket, ...fastSettings, ...settings];
    const owner = asOwner(folder);
    const env = { ...owner.env, ...environment };
    const child = spawn(binary("postgres"), args, { ...owner, env, stdio: ["ignore", "ignore", "pipe"] });
    server = child;
    const lines = createInterface(child.stderr);
    await new Promise<void>((resolve, reject) => {
      // Reads as long as the server runs, so that its log's pipe does not fill up.
      lines.on("line", (line) => {
        log.push(line);
        if (line.includes("database system is ready to accept")) resolve();
      });
      lines.on("close", () => reject(new Error(`PostgreSQL did not start:\n${log.join("\n")}`)));
    });
    keepConnection(folder);
  };

  const stop = async (mode: "fast" | "immediate" | "kill"): Promise<void> => {
    const child = server;
    if (child?.pid === undefined || !isRunning()) return;
    const exit = once(child, "exit");
    if (mode === "kill") await killProcessTree(child.pid);
    else child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await Promise.all([exit, closeConnection(folder)]);
  };

  const signal = (name: NodeJS.Signals): void => {
    if (server?.pid !== undefined && isRunning()) signalProcessTree(server.pid, name);
  };

  const createSchemaWith = async (contentSql: string): Promise<string> => {
    const name = `plants_${++schemas}`;
    await runSql(url, `CREATE SCHEMA ${name}; SET search_path = ${name}, pg_temp; ${contentSql}`);
    return `${url}&options=-csearch_path%3D${name}`;
  };

  await start();
  return {
    socketFolder: folder,
    log,
    createSchema: () => createSchemaWith(""),
    createPlants: (ids = []) =>
      createSchemaWith(`${tablesSql}; INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[])`),
    start,
    stop,
    signal,
    [Symbol.asyncDispose]: async () => {
      await stop("immediate");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function runAsOwner(folder: string, program: string, args: readonly string[]): void {
  execFileSync(binary(program), args, { ...asOwner(folder), stdio: "pipe" });
}

const binary = (program: string): string => join(postgresBinaries(), program);

function asOwner(folder: string): { readonly cwd: string; readonly env: NodeJS.ProcessEnv } {
  return { ...serverOwner(), cwd: folder, env: { ...process.env, LC_ALL: "C" } };
}

function giveToOwner(path: string): void {
  const owner = serverOwner();
  if (owner !== undefined) execFileSync("chown", ["-R", `${owner.uid}:${owner.gid}`, path]);
}

/** Returns another user to run a server's programs, which do not run as root, or `undefined`. */
export function serverOwner(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  nobody ??= { uid: idOfNobody("-u"), gid: idOfNobody("-g") };
  return nobody;
}

let nobody: { readonly uid: number; readonly gid: number } | undefined;

const idOfNobody = (option: "-u" | "-g"): number =>
  Number(execFileSync("id", [option, "nobody"], { encoding: "utf8" }));
