import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, type ClientConfig } from "pg";
import type { Certificate } from "./certificate.ts";
import { postgresBinaries } from "./postgres-binaries.ts";

/** A PostgreSQL server of a test's own, on a Unix socket. */
export interface PostgresServer extends AsyncDisposable {
  /** The folder of its socket. */
  readonly socketFolder: string;
  /** The lines of its log. */
  readonly log: readonly string[];
  /**
   * The URL of an empty schema in it, new with every call: as good as a database of its own, and made in
   * a hundredth of the time.
   */
  createSchema(): Promise<string>;
  /** Stops it: `fast` disconnects its clients, `immediate` is a crash. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
}

/** Runs SQL on a connection of the test's own. */
export async function runSql(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client(configOf(url));
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** The connection that a URL of {@link PostgresServer.createSchema} names. */
export function configOf(url: string): ClientConfig {
  const { searchParams, pathname } = new URL(url);
  const parameter = (name: string): string => searchParams.get(name) ?? "";
  return {
    host: parameter("host"),
    port: Number(parameter("port")),
    database: pathname.slice(1),
    user: parameter("user"),
    options: parameter("options"),
  };
}

/** A certificate for a server that speaks TLS, and the TCP port it shall do so on. */
export interface PostgresTls {
  readonly certificate: Certificate;
  readonly port: number;
}

/** Makes a database cluster and starts its server, on a Unix socket and, with TLS, on a port of 127.0.0.1. */
export async function startPostgres(settings: readonly string[] = [], tls?: PostgresTls): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "plantstore-pg-"));
  const owner = serverOwner();
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  const bin = postgresBinaries();
  const data = join(folder, "data");
  const asOwner = { ...owner, cwd: folder, env: { ...process.env, LC_ALL: "C" } };
  execFileSync(join(bin, "initdb"), ["-D", data, "-A", "trust", "-U", "tester", "-N", "-E", "UTF8"], {
    ...asOwner,
    stdio: "pipe",
  });

  let server: ChildProcess | undefined;
  let schemas = 0;
  const listen = ["-k", folder, "-c", `listen_addresses=${tls === undefined ? "" : "127.0.0.1"}`];
  if (tls !== undefined) {
    writeFileSync(join(folder, "cert.pem"), tls.certificate.cert);
    writeFileSync(join(folder, "key.pem"), tls.certificate.key, { mode: 0o600 });
    if (owner !== undefined) chownSync(join(folder, "key.pem"), owner.uid, owner.gid);
    // The socket's name has the port in it.
    listen.push("-p", String(tls.port), "-c", "ssl=on");
    listen.push("-c", `ssl_cert_file=${join(folder, "cert.pem")}`, "-c", `ssl_key_file=${join(folder, "key.pem")}`);
  }
  // The machine does not crash in a test, so nothing is gained by waiting for its disk.
  const quick = ["-c", "fsync=off", "-c", "max_connections=50", "-c", "shared_buffers=32MB"];

  const log: string[] = [];
  const url = `postgres:///postgres?host=${folder}&port=${tls?.port ?? 5432}&user=tester`;

  const start = async (): Promise<void> => {
    const child = spawn(join(bin, "postgres"), ["-D", data, ...listen, ...quick, ...settings], {
      ...asOwner,
      stdio: ["ignore", "ignore", "pipe"],
    });
    server = child;
    const lines = createInterface(child.stderr);
    await new Promise<void>((resolve, reject) => {
      // Goes on for as long as the server lives: nobody else empties the pipe of its log.
      lines.on("line", (line) => {
        log.push(line);
        if (line.includes("database system is ready to accept connections")) resolve();
      });
      lines.on("close", () => reject(new Error(`PostgreSQL did not start:\n${log.join("\n")}`)));
    });
  };

  const stop = async (mode: "fast" | "immediate"): Promise<void> => {
    const child = server;
    if (child === undefined || child.exitCode !== null) return;
    child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await once(child, "exit");
  };

  await start();
  return {
    socketFolder: folder,
    log,
    createSchema: async () => {
      const name = `plants_${++schemas}`;
      await runSql(url, `CREATE SCHEMA ${name}`);
      return `${url}&options=-csearch_path%3D${name}`;
    },
    start,
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop("immediate");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

// PostgreSQL does not run as root.
function serverOwner(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  return { uid: idOfNobody("-u"), gid: idOfNobody("-g") };
}

function idOfNobody(option: "-u" | "-g"): number {
  return Number(execFileSync("id", [option, "nobody"], { encoding: "utf8" }));
}
