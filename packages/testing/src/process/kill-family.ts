import { readFileSync } from "node:fs";
import { expect } from "vitest";

/**
 * Kills a process and its children with SIGKILL, so that none can react to the exit of another. Resolves once the children
 * have released all resources, such as shared memory.
 */
export async function killFamily(pid: number): Promise<void> {
  // A stopped process starts no more children.
  process.kill(pid, "SIGSTOP");
  await expect.poll(() => stateOf(pid)).toBe("T");
  const children = childrenOf(pid);
  for (const one of [...children, pid]) process.kill(one, "SIGKILL");
  // A zombie has released everything but its process id.
  await expect.poll(() => children.map(stateOf).filter((state) => state !== undefined && state !== "Z")).toEqual([]);
}

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}

/** Returns the state letter of a process (proc_pid_stat(5)); `undefined` if it has exited. */
function stateOf(pid: number): string | undefined {
  try {
    // The name before the state, in parentheses, may contain any characters.
    return /^.*\) (\w)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
