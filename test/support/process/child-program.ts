import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { within } from "../deadline.ts";

/** The folder of the project. */
export const projectFolder: string = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * An environment in which Node keeps what it has compiled for the next start: half of the time of a program that loads
 * the sources. The folder is the one that the command line takes by itself.
 */
export const compileCache: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
};

/** What a program came to. */
export interface ProgramResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in the project's folder to its end. Rejects when it cannot be started or hangs. */
export async function runProgram(file: string, args: readonly string[]): Promise<ProgramResult> {
  const child = spawn(file, args, {
    cwd: projectFolder,
    env: { ...process.env, ...compileCache },
    stdio: ["ignore", "pipe", "pipe"],
  });
  try {
    const ends = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    const [stdout, stderr] = await within(ends, `the end of ${file}`);
    return { exitCode: child.exitCode, stdout, stderr };
  } finally {
    child.kill("SIGKILL");
  }
}
