import { type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compileCache, projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { callerToken } from "./callers.ts";
import { postgresFolder } from "./requirements.ts";
import type { Machine } from "./network.ts";

const password = "secret-of-the-cluster-test";
const replicaPort = 8080;
/** The address of the HAProxy on each machine, through which a replica finds the primary. */
const proxyAddress = "127.0.0.1:5000";

export const databaseUrl = (
  address: string = proxyAddress,
  user: string = "plantstore",
  database: string = "plantstore",
): string => `postgres://${user}:${password}@${address}/${database}`;

/** Returns the SQL that creates a role with the password in {@link databaseUrl}. */
export const createRoleSql = (user: string): string => `CREATE ROLE ${user} LOGIN PASSWORD '${password}'`;
/** The settings with which Patroni runs the Citus coordinator, which connects to its workers with the password. */
const citusEnvironment = { PATRONI_CITUS_DATABASE: "plantstore", PATRONI_CITUS_GROUP: "0", PGPASSWORD: password };

export const databasePrograms = ["etcd", "patroni", "postgres"] as const;

/** A cluster member, as Patroni reports it. */
export interface Member {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly lag?: number | "unknown";
  /** The log's timeline. Each new primary starts a new timeline. */
  readonly timeline?: number;
}

/** A machine with etcd, Patroni and its PostgreSQL, HAProxy, and a plant store replica. */
export class Node {
  readonly machine: Machine;
  readonly replicaUrl: string;
  readonly #folder: string;
  readonly #citusPrograms: string | undefined;
  readonly #programs = new Map<string, ChildProcess>();

  /** @param citusPrograms - the folder with a PostgreSQL that has Citus, if this is a coordinator */
  constructor(machine: Machine, folder: string, citusPrograms?: string) {
    this.machine = machine;
    this.#citusPrograms = citusPrograms;
    this.replicaUrl = `http://${machine.callersAddress}:${replicaPort}`;
    this.#folder = folder;
  }

  /** Starts etcd and Patroni unless they run. Patroni starts PostgreSQL. */
  startDatabase(): void {
    const { name } = this.machine;
    this.#start("etcd", ["etcd"], {
      ...readEnvironment(join(projectFolder, "deploy/cluster/etcd.env")),
      ETCD_NAME: name,
      ETCD_INITIAL_ADVERTISE_PEER_URLS: `http://${name}:2380`,
      ETCD_ADVERTISE_CLIENT_URLS: `http://${name}:2379`,
      ETCD_DATA_DIR: join(this.#folder, "etcd"),
    });
    // oxfmt-ignore
    this.#start("patroni", ["patroni", join(projectFolder, "deploy/cluster/patroni.yml")], {
      PATRONI_NAME: name, PATRONI_RESTAPI_CONNECT_ADDRESS: `${name}:8008`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${name}:5432`, PATRONI_POSTGRESQL_DATA_DIR: join(this.#folder, "data"),
      PATRONI_POSTGRESQL_PGPASS: join(this.#folder, "pgpass"),
      PATRONI_POSTGRESQL_BIN_DIR: this.#citusPrograms ?? postgresFolder() ?? "",
      ...(this.#citusPrograms === undefined ? {} : citusEnvironment), PATRONI_SUPERUSER_USERNAME: "postgres",
      PATRONI_SUPERUSER_PASSWORD: password, PATRONI_REPLICATION_USERNAME: "replicator",
      PATRONI_REPLICATION_PASSWORD: password,
    });
  }

  startProxy(): void {
    this.#start("haproxy", ["haproxy", "-db", "-f", join(projectFolder, "deploy/cluster/haproxy.cfg")], {});
  }

  async startReplica(): Promise<void> {
    // oxfmt-ignore
    this.#start("replica", [process.execPath, join(projectFolder, "src/command/main.ts"), "serve"], {
      ...compileCache, HOST: "0.0.0.0", PORT: String(replicaPort), DATABASE_URL: databaseUrl(),
      PLANTSTORE_TOKENS: callerToken, PLANTSTORE_AUDIT: "by-level", LOG_LEVEL: "warn", PLANTSTORE_DRAIN_DELAY_MS: "0",
    });
    while (!(await this.#isServing())) await new Promise((resolve) => setTimeout(resolve, pollIntervalMs));
  }

  async stopReplica(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.#programs.get("replica");
    if (child === undefined || !isRunning(child)) return;
    child.kill(signal);
    await once(child, "exit");
  }

  /** Sends a request to Patroni. Returns `undefined` when it does not respond. */
  async fetchPatroni(path: string, init: RequestInit = {}): Promise<Response | undefined> {
    const url = `http://${this.machine.clusterAddress}:8008${path}`;
    try {
      return await fetch(url, { signal: AbortSignal.timeout(patroniTimeoutMs), ...init });
    } catch {
      return undefined;
    }
  }

  async #isServing(): Promise<boolean> {
    try {
      return (await fetch(`${this.replicaUrl}/readyz`, { signal: AbortSignal.timeout(patroniTimeoutMs) })).ok;
    } catch {
      return false;
    }
  }

  #start(name: string, command: readonly string[], environment: Readonly<Record<string, string>>): void {
    const earlier = this.#programs.get(name);
    if (earlier !== undefined && isRunning(earlier)) return;
    mkdirSync(this.#folder, { recursive: true });
    const output = openSync(join(this.#folder, `${name}.log`), "a");
    this.#programs.set(name, this.machine.start(command, { environment, output, asOwner: name !== "replica" }));
  }
}

/** The timeout for requests to Patroni in ms. Patroni responds from memory, unless it is frozen or cut off. */
const patroniTimeoutMs = 1_000;

const pollIntervalMs = 100;
const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null;

function readEnvironment(path: string): Record<string, string> {
  const text = readFileSync(path, "utf8");
  const lines = text.split("\n").filter((line) => /^\w+=/.test(line));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}
