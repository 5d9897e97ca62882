import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createTempFolder } from "./temp-folder.ts";

/** Whether system calls can be watched here. */
export function canTrace(): boolean {
  try {
    execFileSync("strace", ["-o", "/dev/null", "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Runs a program on this Node to its end, and returns the lines of strace about some system calls, with the paths of files. */
export function traceCalls(calls: readonly string[], args: readonly string[]): string[] {
  using folder = createTempFolder();
  const trace = folder.file("trace");
  const options = ["-f", "-y", "-e", `trace=${calls.join(",")}`, "-o", trace];
  execFileSync("strace", [...options, process.execPath, ...args], { stdio: "ignore" });
  return readFileSync(trace, "utf8").split("\n");
}

/**
 * Runs a program on this Node to its end, and makes some of its system calls on one file or folder fail.
 *
 * @param fault - which calls fail how, and when, counted in each thread (strace(1), "inject")
 * @returns what the program has written; what it says of itself when it fails is dropped
 * @throws when the program fails
 */
export function runWithFault(fault: string, path: string, args: readonly string[]): string {
  const options = ["-f", "-qq", "-P", path, "-e", `inject=${fault}`, "-o", "/dev/null"];
  return execFileSync("strace", [...options, process.execPath, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
}
