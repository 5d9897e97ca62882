import { readFileSync } from "node:fs";
import { expect } from "vitest";

/**
 * Kills a process and its children by SIGKILL, without a moment in which one could react to the end of another.
 * Resolves once the children hold nothing of the system any more, such as shared memory.
 */
export async function killFamily(pid: number): Promise<void> {
  // A process that is stopped starts no more children.
  process.kill(pid, "SIGSTOP");
  await expect.poll(() => stateOf(pid)).toBe("T");
  const children = childrenOf(pid);
  for (const one of [...children, pid]) process.kill(one, "SIGKILL");
  // A zombie has given back everything but its number.
  await expect.poll(() => children.map(stateOf).filter((state) => state !== undefined && state !== "Z")).toEqual([]);
}

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}

/** The state of a process by its letter in proc_pid_stat(5); `undefined` if it is gone. */
function stateOf(pid: number): string | undefined {
  try {
    // The name before it, in parentheses, may have any characters.
    return /^.*\) (\w)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
