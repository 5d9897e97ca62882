import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Certificate } from "../../../protoport/testing/src/http/certificate.ts";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { openClient, type PostgresServer, runSql, serverOwner, startPostgres } from "./postgres-server.ts";

/** A separate PgBouncer for a test, on a Unix socket, in front of a server's database `plantstore`. */
export interface Pgbouncer extends AsyncDisposable {
  readonly url: string;
  /** Kills PgBouncer. Responses that PgBouncer has not forwarded are lost. */
  kill(): Promise<void>;
  /** Sends a signal to PgBouncer. SIGHUP makes PgBouncer read its configuration again. */
  signal(name: NodeJS.Signals): void;
  start(): Promise<void>;
  /** Makes PgBouncer present another certificate to the clients that connect from now on. */
  certify(certificate: Certificate): void;
}

const defaultPort = 6_432;
/** The pool size. Clients open more connections, so that connections take turns, even those of one client. */
const serverConnections = 2;

export interface PgbouncerOptions {
  /** Whether PgBouncer keeps its clients' prepared statements, if its version can. Default false. */
  readonly keeps?: boolean;
  /** Whether it silently drops its clients' `options`; by default it refuses clients that have any. */
  readonly dropsOptions?: boolean;
  /** Makes PgBouncer also listen on this port of 127.0.0.1, with TLS alone. */
  readonly tls?: { readonly certificate: Certificate; readonly port: number };
}

/**
 * Starts PgBouncer with the example of `deploy/`, except for where its server is and which users it lets in.
 * @param serverFolder - the server socket's folder
 * @throws Error when the program is missing
 */
export async function startPgbouncer(serverFolder: string, options: PgbouncerOptions = {}): Promise<Pgbouncer> {
  const folder = mkdtempSync(join(tmpdir(), "plantstore-pgbouncer-"));
  const port = options.tls?.port ?? defaultPort;
  const write = ({ cert, key }: Certificate): void => {
    writeFileSync(join(folder, "cert.pem"), cert);
    writeFileSync(join(folder, "key.pem"), key);
  };
  if (options.tls !== undefined) write(options.tls.certificate);
  const config = join(folder, "pgbouncer.ini");
  writeFileSync(config, configOf(folder, serverFolder, options));
  writeFileSync(join(folder, "users"), '"tester" ""\n');
  const owner = serverOwner();
  if (owner !== undefined) execFileSync("chown", ["-R", `${owner.uid}:${owner.gid}`, folder]);
  let pooler: ChildProcess | undefined;

  const kill = async (): Promise<void> => {
    const child = pooler;
    pooler = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
    // PgBouncer would conclude from an old socket that another instance is running.
    rmSync(join(folder, `.s.PGSQL.${port}`), { force: true });
  };

  const start = async (): Promise<void> => {
    if (pooler !== undefined) return;
    const child = spawn(program(), [config], { ...owner, cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    pooler = child;
    const log: string[] = [];
    const lines = createInterface(child.stderr);
    await new Promise<void>((resolve, reject) => {
      child.on("error", reject);
      // Reads as long as PgBouncer runs, so that its log's pipe does not fill up.
      lines.on("line", (line) => {
        log.push(line);
        if (line.includes("process up")) resolve();
      });
      lines.on("close", () => reject(new Error(`PgBouncer did not start:\n${log.join("\n")}`)));
    });
  };

  await start();
  return {
    url: `postgres:///plantstore?host=${folder}&port=${port}&user=tester`,
    kill,
    signal: (name) => void pooler?.kill(name),
    start,
    certify: (certificate) => {
      write(certificate);
      pooler?.kill("SIGHUP");
    },
    [Symbol.asyncDispose]: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A server with an empty database `plantstore`, and a PgBouncer in front of it. */
export interface PooledDatabase extends AsyncDisposable {
  readonly postgres: PostgresServer;
  readonly pooler: Pgbouncer;
  /** The database's URL without the pooler, for the test's checks. */
  readonly direct: string;
}

/** Starts a {@link PooledDatabase}. @param options - for its PgBouncer */
export async function startPooledDatabase(options?: PgbouncerOptions): Promise<PooledDatabase> {
  const postgres = await startPostgres();
  const administration = await postgres.createSchema();
  await runSql(administration, "CREATE DATABASE plantstore");
  const pooler = await startPgbouncer(postgres.socketFolder, options);
  return {
    postgres,
    pooler,
    direct: administration.replace("/postgres?", "/plantstore?").replace(/&options=.*/, ""),
    [Symbol.asyncDispose]: async () => {
      await pooler[Symbol.asyncDispose]();
      await postgres[Symbol.asyncDispose]();
    },
  };
}

// If a setting appears twice, the later one applies.
function configOf(
  folder: string,
  serverFolder: string,
  { keeps = false, dropsOptions = false, tls }: PgbouncerOptions,
): string {
  return `${readFileSync(join(projectFolder, "deploy/pgbouncer.ini"), "utf8")}
listen_addr = ${tls === undefined ? "" : "127.0.0.1"}
unix_socket_dir = ${folder}
listen_port = ${tls?.port ?? defaultPort}
auth_type = trust
auth_file = ${join(folder, "users")}
stats_users = tester
server_tls_sslmode = disable
client_tls_sslmode = ${tls === undefined ? "disable" : "require"}
client_tls_cert_file = ${join(folder, "cert.pem")}
client_tls_key_file = ${join(folder, "key.pem")}
default_pool_size = ${serverConnections}
server_round_robin = 1
${dropsOptions ? "ignore_startup_parameters = options" : ""}
${canKeepStatements() && !keeps ? "max_prepared_statements = 0" : ""}
[databases]
plantstore = host=${serverFolder} port=5432 dbname=plantstore
`;
}

/** Leaves the state of SQL, such as a `SET`, on every server connection, as another client of the pooler may. */
export async function leaveOnConnections(url: string, sql: string): Promise<void> {
  // Each in a transaction, so that no two have the same connection. The last call may have left it read-only or with a
  // role without privileges, because the store need not have used every connection since.
  const opened = await Promise.allSettled(
    Array.from({ length: serverConnections }, () => openClient(url, "BEGIN READ WRITE")),
  );
  const clients = opened.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  try {
    for (const each of opened) if (each.status === "rejected") throw each.reason;
    for (const client of clients) await client.query(`RESET ROLE; ${sql}; COMMIT`);
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

/** Returns whether the release can keep its clients' prepared statements. */
export function canKeepStatements(): boolean {
  const [, minor] = /PgBouncer 1\.(\d+)/.exec(execFileSync(program(), ["--version"], { encoding: "utf8" })) ?? [];
  return Number(minor) >= 21;
}

function program(): string {
  // Debian installs it in a folder that only root has on PATH.
  for (const name of [process.env["PGBOUNCER"] ?? "pgbouncer", "/usr/sbin/pgbouncer"]) {
    try {
      execFileSync(name, ["--version"], { stdio: "ignore" });
      return name;
    } catch {
      // The program is missing.
    }
  }
  throw new Error("these tests need PgBouncer (on Debian: apt-get install pgbouncer)");
}
