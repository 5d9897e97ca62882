import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** The core that is reserved for the server under load. */
export const serverCore = 0;

/** The core that is reserved for load generators. */
export const loadCore = 1;

/**
 * Whether processes can be pinned to cores. Otherwise, server and load share the cores, and figures are less accurate.
 */
export const canPin: boolean = spawnSync("taskset", ["--version"], { stdio: "ignore" }).error === undefined;

/** Returns the command line that runs a command on one core, if that is possible. */
export function pinned(core: number, command: readonly [string, ...string[]]): [string, ...string[]] {
  return canPin ? ["taskset", "-c", String(core), ...command] : [...command];
}

/** The unit of CPU times in /proc, in µs. USER_HZ is 100 on every Linux on which Node runs. */
export const tickUs: number = 10_000;

/**
 * Returns how long a core has been busy since the machine started, in µs, or `undefined` where the system does not
 * report it.
 */
export function busyUs(core: number): number | undefined {
  const line = readStat().match(new RegExp(`^cpu${String(core)} (.*)$`, "m"))?.[1];
  if (line === undefined) return undefined;
  // The values are user nice system idle iowait irq softirq steal (proc_stat(5)). The values after `steal` are included
  // in these values.
  const ticks = line.split(" ").map(Number);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = ticks;
  return (user + nice + system + irq + softIrq + steal) * tickUs;
}

function readStat(): string {
  try {
    return readFileSync("/proc/stat", "latin1");
  } catch {
    return "";
  }
}
