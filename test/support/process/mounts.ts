import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { compileCache, projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { type CommandLine, startProgram } from "../../../protoport/testing/src/process/command-line.ts";

const privateMounts = ["--mount", "--propagation", "private"];

/** Returns whether this machine allows a process to have mounts that no other process has. */
export function canMount(): boolean {
  try {
    execFileSync("unshare", [...privateMounts, "mount", "--bind", "/tmp", "/tmp"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Starts `plantstore` after shell commands such as `mount --bind volume data`, which only its process sees. */
export function startWithMounts(
  mounts: string,
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>>,
): CommandLine {
  const program = [process.execPath, join(projectFolder, "src/command/main.ts"), ...args];
  return startProgram("unshare", [...privateMounts, "sh", "-ec", `${mounts}\nexec "$@"`, "sh", ...program], folder, {
    ...compileCache,
    ...environment,
  });
}

/** Mounts a file over itself, only for a process that `startWithMounts` has started. */
export function mountFor(pid: number, file: string): void {
  execFileSync("nsenter", ["--mount", "--target", String(pid), "mount", "--bind", file, file]);
}

/** Removes the mount that {@link mountFor} has created. */
export function unmountFor(pid: number, file: string): void {
  execFileSync("nsenter", ["--mount", "--target", String(pid), "umount", file]);
}
