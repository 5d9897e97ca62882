import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { serverOwner } from "../../support/plants/postgres-server.ts";

/** A machine: a separate network namespace with its processes. */
export interface Machine {
  /** The machine's name in /etc/hosts: node-1, node-2, node-3. */
  readonly name: string;
  /** The machine's address on the databases' network, which can be cut. */
  readonly clusterAddress: string;
  /** The machine's address on the callers' network. */
  readonly callersAddress: string;
  start(command: readonly string[], options: StartOptions): ChildProcess;
  signal(programs: readonly string[], signal: NodeJS.Signals): void;
  /** Silently drops all packets between this machine and the other machines. */
  cutOff(): void;
  connect(): void;
}

export interface StartOptions {
  readonly environment: Readonly<Record<string, string>>;
  /** The file descriptor for the program's output. */
  readonly output: number;
  /** Whether the program runs as the database user instead of root. */
  readonly asOwner: boolean;
}

const networks = [
  { bridge: "cluster", device: "eth0", prefix: "10.77.0" },
  { bridge: "callers", device: "eth1", prefix: "10.78.0" },
] as const;

/** The number that the bridges' host has in each network. */
const ownNumber = 254;

/** Creates two networks with machines on both. Everything is in this process's namespaces, and removed with them. */
export async function buildMachines(count: number): Promise<Machine[]> {
  ip("link", "set", "lo", "up");
  for (const { bridge, prefix } of networks) {
    ip("link", "add", bridge, "type", "bridge");
    ip("address", "add", `${prefix}.${ownNumber}/24`, "dev", bridge);
    ip("link", "set", bridge, "up");
  }
  return await Promise.all(Array.from({ length: count }, (_, i) => buildMachine(i + 1)));
}

async function buildMachine(number: number): Promise<Machine> {
  const pid = await holdNamespace();
  const inside = [`--net=/proc/${pid}/ns/net`, `--mount=/proc/${pid}/ns/mnt`, "--"];
  const ipInside = (...args: string[]): void => void execFileSync("nsenter", [...inside, "ip", ...args]);
  ipInside("link", "set", "lo", "up");
  for (const { bridge, device, prefix } of networks) {
    ip("link", "add", `${bridge}-${number}`, "type", "veth", "peer", "name", device, "netns", String(pid));
    ip("link", "set", `${bridge}-${number}`, "master", bridge, "up");
    ipInside("address", "add", `${prefix}.${number}/24`, "dev", device);
    ipInside("link", "set", device, "up");
  }
  const namespace = readlinkSync(`/proc/${pid}/ns/net`);
  return {
    name: `node-${number}`,
    clusterAddress: `10.77.0.${number}`,
    callersAddress: `10.78.0.${number}`,
    start: (command, { environment, output, asOwner }) => {
      const args = [...inside, ...(asOwner ? demotion() : []), ...command];
      const env = { PATH: process.env["PATH"], LC_ALL: "C.UTF-8", HOME: "/tmp", ...environment };
      return spawn("nsenter", args, { stdio: ["ignore", output, output], env, cwd: "/tmp" });
    },
    signal: (programs, signal) => {
      for (const { id, program } of processesIn(namespace)) if (programs.includes(program)) send(id, signal);
    },
    // A port without a bridge drops its packets.
    cutOff: () => ip("link", "set", `cluster-${number}`, "nomaster"),
    connect: () => ip("link", "set", `cluster-${number}`, "master", "cluster"),
  };
}

/** The socket folder of Debian's PostgreSQL, which is separate on each machine. */
const socketFolder = "/run/postgresql";

/** Creates a network namespace, which exists as long as a process, and resolves to that process's id. */
async function holdNamespace(): Promise<number> {
  const script = `mount -t tmpfs -o mode=1777 tmpfs ${socketFolder} && echo && exec sleep infinity`;
  const holder = spawn("unshare", ["--net", "--mount", "sh", "-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  await once(holder.stdout, "data");
  return holder.pid ?? 0;
}

function ip(...args: readonly string[]): void {
  execFileSync("ip", args);
}

function demotion(): string[] {
  const owner = serverOwner();
  return owner === undefined ? [] : ["setpriv", `--reuid=${owner.uid}`, `--regid=${owner.gid}`, "--clear-groups"];
}

function* processesIn(namespace: string): Generator<{ readonly id: number; readonly program: string }> {
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      if (readlinkSync(`/proc/${name}/ns/net`) !== namespace) continue;
      yield { id: Number(name), program: readFileSync(`/proc/${name}/comm`, "utf8").trim() };
    } catch {
      // The process has exited in the meantime.
    }
  }
}

function send(id: number, signal: NodeJS.Signals): void {
  try {
    process.kill(id, signal);
  } catch {
    // The process has exited in the meantime.
  }
}
