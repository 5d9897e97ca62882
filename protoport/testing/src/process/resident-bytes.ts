import { readFileSync } from "node:fs";

/** Returns a process's resident memory in bytes. The function works only on Linux. */
export function residentBytes(pid: number | undefined): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, "latin1");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
