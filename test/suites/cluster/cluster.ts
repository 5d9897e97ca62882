import { mkdirSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { migratePlants } from "../../../src/stores/index.ts";
import { serverOwner } from "../../support/plants/postgres-server.ts";
import { within } from "../../../protoport/testing/src/deadline.ts";
import { buildMachines } from "./network.ts";
import { addWorkers, copyCitus } from "./citus-workers.ts";
import { createRoleSql, databaseUrl, type Member, Node } from "./node.ts";

/** How long the cluster may take in ms to recover, in which Patroni detects a fault and creates a new copy. */
const recoveryLimitMs = 180_000;
/** How long a member may take in ms to recover by itself, three times as long as on an idle machine. */
const patienceMs = 60_000;

const nodesMade = 3;

/** Three nodes that replicate one database. */
export class Cluster {
  readonly nodes: readonly Node[];

  private constructor(nodes: readonly Node[]) {
    this.nodes = nodes;
  }

  /** Starts a cluster in a folder. @param workers - how many Citus workers run on machines besides the nodes */
  static async start(folder: string, workers: number = 0): Promise<Cluster> {
    const machines = await buildMachines(nodesMade + workers);
    const programs = workers > 0 ? copyCitus(folder) : undefined;
    const nodes = machines
      .slice(0, nodesMade)
      .map((machine) => new Node(machine, folderFor(folder, machine.name), programs));
    const cluster = new Cluster(nodes);
    for (const node of nodes) node.startDatabase();
    for (const node of nodes) node.startProxy();
    await cluster.untilWhole();
    if (programs === undefined) await cluster.#createDatabase();
    else {
      const others = machines.slice(nodesMade);
      const placed = others.map((machine) => ({ ...machine, folder: folderFor(folder, machine.name) }));
      await addWorkers(placed, programs, (sql) => cluster.query(sql));
    }
    await migratePlants({ kind: "postgres", url: databaseUrl((await cluster.primary()).machine.clusterAddress) });
    await Promise.all(nodes.map((node) => node.startReplica()));
    return cluster;
  }

  /** Returns the node whose Patroni reports that it has the primary. */
  async primary(): Promise<Node> {
    return await this.#nodeThatIs("primary");
  }

  async synchronousStandby(): Promise<Node> {
    return await this.#nodeThatIs("synchronous");
  }

  /** Switches over to a standby, as for maintenance, and resolves when the standby is the primary. */
  async switchOver(): Promise<void> {
    const { name } = (await this.primary()).machine;
    const body = JSON.stringify({ leader: name });
    while ((await this.primary()).machine.name === name) {
      for (const node of this.nodes) await node.fetchPatroni("/switchover", { method: "POST", body });
      await sleep(pollIntervalMs);
    }
  }

  async query(sql: string, database: string = "plantstore"): Promise<Record<string, unknown>[]> {
    const { machine } = await this.primary();
    const url = databaseUrl(machine.clusterAddress, "postgres", database);
    const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  /** Resolves when a primary and both standbys run. Reinitialises a member that does not recover by itself. */
  async untilWhole(): Promise<void> {
    const sinceMs = performance.now();
    const renewed = new Set<string>();
    let members = await this.#members();
    while (!isWhole(members)) {
      const lastedMs = performance.now() - sinceMs;
      if (lastedMs > recoveryLimitMs) throw new Error(`the cluster has not recovered: ${JSON.stringify(members)}`);
      if (lastedMs > patienceMs)
        for (const { name } of members.filter((one) => isAstray(one, members))) await this.#renew(name, renewed);
      await sleep(pollIntervalMs);
      members = await this.#members();
    }
  }

  async #renew(name: string, renewed: Set<string>): Promise<void> {
    if (renewed.has(name)) return;
    renewed.add(name);
    process.stdout.write(`${name} has not recovered by itself: reinitialising it\n`);
    const node = this.nodes.find(({ machine }) => machine.name === name);
    await node?.fetchPatroni("/reinitialize", { method: "POST", body: JSON.stringify({ force: true }) });
  }

  async #members(): Promise<readonly Member[]> {
    for (const node of this.nodes) {
      const response = await node.fetchPatroni("/cluster");
      if (response !== undefined) return JSON.parse(await response.text()).members;
    }
    return [];
  }

  async #nodeThatIs(role: "primary" | "synchronous"): Promise<Node> {
    const find = async (): Promise<Node> => {
      for (;;) {
        for (const node of this.nodes) if ((await node.fetchPatroni(`/${role}`))?.status === 200) return node;
        await sleep(pollIntervalMs);
      }
    };
    return await within(find(), `a ${role}`, recoveryLimitMs);
  }

  async #createDatabase(): Promise<void> {
    await this.query(createRoleSql("plantstore"), "postgres");
    await this.query("CREATE DATABASE plantstore OWNER plantstore", "postgres");
  }
}

const pollIntervalMs = 250;

function isWhole(members: readonly Member[]): boolean {
  const roles = members.filter((member) => !isAstray(member, members)).map(({ role }) => role);
  return ["leader", "sync_standby", "replica"].every((role) => roles.includes(role));
}

// A standby that cannot start stays in the state "starting", one without a primary lags behind, and a former primary
// whose log diverged stays on its timeline. While such a log is ahead of the others, Patroni elects no primary.
function isAstray({ role, state, lag, timeline }: Member, members: readonly Member[]): boolean {
  const isRunning = state === "running" || state === "streaming";
  const leader = members.find((member) => member.role === "leader");
  return role !== "leader" && (!isRunning || lag === "unknown" || timeline !== leader?.timeline);
}

function folderFor(folder: string, name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  const owner = serverOwner();
  if (owner !== undefined) execFileSync("chown", [`${owner.uid}:${owner.gid}`, path]);
  return path;
}
