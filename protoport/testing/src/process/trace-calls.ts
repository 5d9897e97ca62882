import { execFileSync, type StdioOptions } from "node:child_process";
import { readFileSync } from "node:fs";
import { createTempFolder } from "./temp-folder.ts";

/** Returns whether strace can trace system calls. */
export function canTrace(): boolean {
  try {
    execFileSync("strace", ["-o", "/dev/null", "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Runs a program on this Node, and returns strace's lines for the given system calls, with file paths. */
export function traceCalls(calls: readonly string[], args: readonly string[]): string[] {
  using folder = createTempFolder();
  const trace = folder.file("trace");
  const options = ["-f", "-y", "-e", `trace=${calls.join(",")}`, "-o", trace];
  execFileSync("strace", [...options, process.execPath, ...args], { stdio: "ignore" });
  return readFileSync(trace, "utf8").split("\n");
}

/**
 * Runs a program on this Node, in which some system calls on a file or folder fail.
 * @param fault - defines which calls fail, how and when. Calls are counted per thread (strace(1), "inject")
 * @returns the program's standard output. Standard error is discarded
 * @throws Error if the program fails
 */
export function runWithFault(fault: string, path: string, args: readonly string[]): string {
  const options = ["-f", "-qq", "-P", path, "-e", `inject=${fault}`, "-o", "/dev/null"];
  const stdio: StdioOptions = ["ignore", "pipe", "ignore"];
  return execFileSync("strace", [...options, process.execPath, ...args], { encoding: "utf8", stdio });
}
