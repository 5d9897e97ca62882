import type { Cluster } from "./cluster.ts";
import { databasePrograms, type Node } from "./node.ts";

export type Fault = { readonly name: string; readonly seconds: number; inject(cluster: Cluster): Promise<Trouble> };
export type Trouble = { heal(): unknown; readonly at?: Node };
const healed: Trouble = { heal: () => undefined };
/** Longer than Patroni takes to replace a silent primary, which is `ttl` in deploy/cluster/patroni.yml. */
const longerThanTtlS = 35;

/** The faults in the order in which they are injected repeatedly. */
// oxfmt-ignore
export const faults: readonly Fault[] = [
  { name: "the primary is switched over", seconds: 0, inject: async (cluster) => {
      await cluster.switchOver();
      return healed;
    } },
  { name: "the machine of the primary is killed", seconds: longerThanTtlS,
    inject: async (cluster) => kill(await cluster.primary()) },
  { name: "the replicas are restarted in turn", seconds: 0, inject: async ({ nodes }) => {
      for (const [i, node] of nodes.entries()) {
        await node.stopReplica(i === 0 ? "SIGKILL" : "SIGTERM");
        await node.startReplica();
      }
      return healed;
    } },
  { name: "the machine of the primary is cut off from the others", seconds: longerThanTtlS,
    inject: async (cluster) => cutOff(await cluster.primary()) },
  { name: "the machine of the primary is frozen", seconds: longerThanTtlS,
    inject: async (cluster) => freeze(await cluster.primary(), databasePrograms) },
  { name: "PostgreSQL of the primary is killed", seconds: 0, inject: async (cluster) => {
      (await cluster.primary()).machine.signal(["postgres"], "SIGKILL");
      return healed;
    } },
  { name: "Patroni of the primary is frozen", seconds: longerThanTtlS,
    inject: async (cluster) => freeze(await cluster.primary(), ["patroni"]) },
  { name: "the machine of the synchronous standby is killed", seconds: longerThanTtlS,
    inject: async (cluster) => kill(await cluster.synchronousStandby()) },
  { name: "the machine of the synchronous standby is cut off", seconds: longerThanTtlS,
    inject: async (cluster) => cutOff(await cluster.synchronousStandby()) },
  { name: "etcd has no quorum", seconds: longerThanTtlS, inject: async (cluster) => {
      const others = cluster.nodes.slice(1);
      for (const { machine } of others) machine.signal(["etcd"], "SIGKILL");
      return { heal: () => others.forEach((node) => node.startDatabase()) };
    } },
  { name: "etcd has no quorum and the machine of the primary is killed", seconds: longerThanTtlS,
    inject: async (cluster) => {
      const primary = await cluster.primary();
      const other = await cluster.synchronousStandby();
      other.machine.signal(["etcd"], "SIGKILL");
      primary.machine.signal(databasePrograms, "SIGKILL");
      return { heal: () => [primary, other].forEach((node) => node.startDatabase()) };
    } },
];

function kill(node: Node): Trouble {
  node.machine.signal(databasePrograms, "SIGKILL");
  return { heal: () => node.startDatabase(), at: node };
}

function cutOff(node: Node): Trouble {
  node.machine.cutOff();
  return { heal: () => node.machine.connect(), at: node };
}

function freeze(node: Node, programs: readonly string[]): Trouble {
  node.machine.signal(programs, "SIGSTOP");
  return { heal: () => node.machine.signal(programs, "SIGCONT"), at: node };
}
