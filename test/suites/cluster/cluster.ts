import { mkdirSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { migratePlants } from "../../../src/stores/index.ts";
import { serverOwner } from "../../support/plants/postgres-server.ts";
import { within } from "../../../packages/testing/src/deadline.ts";
import { buildMachines } from "./network.ts";
import { addWorkers, copyCitus } from "./citus-workers.ts";
import { createRoleSql, databaseUrl, type Member, Node, type Route } from "./node.ts";

/** Milliseconds within which the cluster is to be whole again: the time in which Patroni notices, and that of a copy. */
const wholeLimitMs = 180_000;

/** Milliseconds that a member is given to come back by itself: three times what that takes on an idle machine. */
const patienceMs = 60_000;

/** One replica of the plant store finds the primary by HAProxy, the others by the list of hosts. */
const routes: readonly Route[] = ["hosts", "hosts", "haproxy"];

/** Three nodes that keep one database. */
export class Cluster {
  readonly nodes: readonly Node[];

  private constructor(nodes: readonly Node[]) {
    this.nodes = nodes;
  }

  /**
   * Starts it in a folder, with an empty store and a replica on each node.
   *
   * @param workers - how many workers of Citus there are, on machines of their own, the coordinator of which is on the
   * nodes; without any, the nodes have the store
   */
  static async start(folder: string, workers: number = 0): Promise<Cluster> {
    const machines = await buildMachines(routes.length + workers);
    const programs = workers > 0 ? copyCitus(folder) : undefined;
    const nodes = machines
      .slice(0, routes.length)
      .map((machine, i) => new Node(machine, routes[i] ?? "hosts", folderFor(folder, machine.name), programs));
    const cluster = new Cluster(nodes);
    for (const node of nodes) node.startDatabase();
    for (const node of nodes) node.startProxy();
    await cluster.untilWhole();
    if (programs === undefined) await cluster.#createDatabase();
    else {
      const others = machines.slice(routes.length);
      const placed = others.map((machine) => ({ ...machine, folder: folderFor(folder, machine.name) }));
      await addWorkers(placed, programs, (sql) => cluster.query(sql));
    }
    await migratePlants({ kind: "postgres", url: databaseUrl("hosts") });
    await Promise.all(nodes.map((node) => node.startReplica()));
    return cluster;
  }

  /** The node whose Patroni says that it has the primary. */
  async primary(): Promise<Node> {
    return await this.#nodeThatIs("primary");
  }

  /** The node with the standby that commits wait for. */
  async synchronousStandby(): Promise<Node> {
    return await this.#nodeThatIs("synchronous");
  }

  /** Has a standby take over, as for maintenance, and resolves once it has. */
  async switchOver(): Promise<void> {
    const { name } = (await this.primary()).machine;
    const body = JSON.stringify({ leader: name });
    while ((await this.primary()).machine.name === name) {
      for (const node of this.nodes) await node.askPatroni("/switchover", { method: "POST", body });
      await sleep(lookIntervalMs);
    }
  }

  /** Runs SQL on the primary. */
  async query(sql: string, database: string = "plantstore"): Promise<Record<string, unknown>[]> {
    const { machine } = await this.primary();
    const url = databaseUrl("hosts", "postgres", database).replace("node-1,node-2,node-3", machine.clusterAddress);
    const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  /**
   * Resolves once there are a primary, a synchronous standby and another standby, and all of them run. A member that does
   * not come back by itself is given a new copy, as its operator would do.
   */
  async untilWhole(): Promise<void> {
    const sinceMs = performance.now();
    const renewed = new Set<string>();
    let members = await this.#members();
    while (!isWhole(members)) {
      const lastedMs = performance.now() - sinceMs;
      if (lastedMs > wholeLimitMs) throw new Error(`the cluster is not whole: ${JSON.stringify(members)}`);
      if (lastedMs > patienceMs) for (const { name } of members.filter(isAstray)) await this.#renew(name, renewed);
      await sleep(lookIntervalMs);
      members = await this.#members();
    }
  }

  async #renew(name: string, renewed: Set<string>): Promise<void> {
    if (renewed.has(name)) return;
    renewed.add(name);
    process.stdout.write(`${name} does not come back by itself: it is given a new copy\n`);
    const node = this.nodes.find(({ machine }) => machine.name === name);
    await node?.askPatroni("/reinitialize", { method: "POST", body: JSON.stringify({ force: true }) });
  }

  async #members(): Promise<readonly Member[]> {
    for (const node of this.nodes) {
      const answer = await node.askPatroni("/cluster");
      if (answer !== undefined) return JSON.parse(await answer.text()).members;
    }
    return [];
  }

  async #nodeThatIs(role: "primary" | "synchronous"): Promise<Node> {
    const look = async (): Promise<Node> => {
      for (;;) {
        for (const node of this.nodes) if ((await node.askPatroni(`/${role}`))?.status === 200) return node;
        await sleep(lookIntervalMs);
      }
    };
    return await within(look(), `a ${role}`, wholeLimitMs);
  }

  async #createDatabase(): Promise<void> {
    await this.query(createRoleSql("plantstore"), "postgres");
    await this.query("CREATE DATABASE plantstore OWNER plantstore", "postgres");
  }
}

const lookIntervalMs = 250;

function isWhole(members: readonly Member[]): boolean {
  const roles = members.filter((member) => !isAstray(member)).map(({ role }) => role);
  return ["leader", "sync_standby", "replica"].every((role) => roles.includes(role));
}

// A standby that starts and starts says so, and one that follows nobody lags behind.
function isAstray({ role, state, lag }: Member): boolean {
  const isRunning = state === "running" || state === "streaming";
  return role !== "leader" && (!isRunning || lag === "unknown");
}

function folderFor(folder: string, name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  const owner = serverOwner();
  if (owner !== undefined) execFileSync("chown", [`${owner.uid}:${owner.gid}`, path]);
  return path;
}
