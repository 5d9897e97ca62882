import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { within } from "../deadline.ts";
import { attempt } from "../attempt.ts";

const pollIntervalMs = 10;

/** Kills a process and its children with SIGKILL, and waits until they have released all resources. */
export async function killProcessTree(pid: number): Promise<void> {
  // A stopped process starts no more children.
  process.kill(pid, "SIGSTOP");
  await untilAll([pid], (state) => state === "T");
  const children = childrenOf(pid);
  for (const one of [...children, pid]) process.kill(one, "SIGKILL");
  // A zombie process has released all resources except its process id.
  await untilAll(children, (state) => state === undefined || state === "Z");
}

/** Sends a signal such as SIGSTOP to a process and its children. */
export function signalProcessTree(pid: number, name: NodeJS.Signals): void {
  for (const one of [...childrenOf(pid), pid]) {
    try {
      process.kill(one, name);
    } catch {
      // The error is ignored, because the process has exited in the meantime.
    }
  }
}

/** Resolves once all processes have an accepted state. */
async function untilAll(pids: readonly number[], accepts: (state: string | undefined) => boolean): Promise<void> {
  const check = async (): Promise<void> => {
    while (!pids.map(stateOf).every(accepts)) await sleep(pollIntervalMs);
  };
  await within(check(), `the states of the processes ${pids.join(", ")}`);
}

/** Returns a process's child processes. A process that has exited has no child processes. */
const childrenOf = (pid: number): readonly number[] =>
  attempt(() => readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8"))
    ?.split(" ")
    .filter(Boolean)
    .map(Number) ?? [];

/** Returns a process's state letter (proc_pid_stat(5)), or `undefined` if the process has exited. */
const stateOf = (pid: number): string | undefined =>
  // In the file, the process's name precedes the state. The name is in parentheses, and may contain any characters.
  /^.*\) (\w)/s.exec(attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8")) ?? "")?.[1];

/** Returns a process's resident memory in bytes. The function works only on Linux. */
export const residentBytes = (pid: number | undefined): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/status`, "latin1"))?.[1]) * 1024;
