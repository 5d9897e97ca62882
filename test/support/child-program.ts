import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { within } from "./deadline.ts";

/** The folder of the project. */
export const projectFolder: string = fileURLToPath(new URL("../..", import.meta.url));

/** A command line tool that takes longer than this has hung, in ms. */
const programLimitMs = 15_000;

/** What a program came to. */
export interface ProgramResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in the project's folder to its end. Rejects when it cannot be started or hangs. */
export async function runProgram(file: string, args: readonly string[]): Promise<ProgramResult> {
  const child = spawn(file, args, { cwd: projectFolder, stdio: ["ignore", "pipe", "pipe"] });
  try {
    const ends = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    const [stdout, stderr] = await within(ends, `the end of ${file}`, programLimitMs);
    return { exitCode: child.exitCode, stdout, stderr };
  } finally {
    child.kill("SIGKILL");
  }
}
