import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { projectFolder } from "./child-program.ts";
import { within } from "../deadline.ts";

/** The longest build, of Rust's crates on a machine that has none of them yet and is busy, in ms. */
export const buildLimitMs = 900_000;

/** Where a step runs, and with what added to the environment. */
export interface BuildStepOptions {
  readonly folder?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Runs one step of a build to its end, and returns what it wrote. Rejects with all of that when it fails. */
export async function buildStep(
  file: string,
  args: readonly string[],
  { folder = projectFolder, environment = {} }: BuildStepOptions = {},
): Promise<string> {
  const child = spawn(file, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  try {
    const ends = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    const [stdout, stderr] = await within(ends, `the end of ${file}`, buildLimitMs);
    if (child.exitCode !== 0)
      throw new Error(`${file} ${args.join(" ")} ended with ${child.exitCode}:\n${stdout}${stderr}`);
    return stdout + stderr;
  } finally {
    child.kill("SIGKILL");
  }
}
