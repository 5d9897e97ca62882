import { type ProgramOptions, runProgram } from "./child-program.ts";

/** Timeout for the longest build, in ms: all Rust crates on a busy machine without a cache. */
export const buildLimitMs = 900_000;

/** Runs a build step, and returns its output. If the step fails, rejects with the output. */
export async function buildStep(file: string, args: readonly string[], options: ProgramOptions = {}): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram(file, args, { limitMs: buildLimitMs, ...options });
  if (exitCode !== 0) throw new Error(`${file} ${args.join(" ")} exited with ${exitCode}:\n${stdout}${stderr}`);
  return stdout + stderr;
}
