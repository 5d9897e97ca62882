import { type ProgramOptions, runProgram } from "./child-program.ts";

/** The longest build, of Rust's crates on a machine that has none of them yet and is busy, in ms. */
export const buildLimitMs = 900_000;

/** Runs one step of a build to its end, and returns what it wrote. Rejects with all of that when it fails. */
export async function buildStep(file: string, args: readonly string[], options: ProgramOptions = {}): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram(file, args, { limitMs: buildLimitMs, ...options });
  if (exitCode !== 0) throw new Error(`${file} ${args.join(" ")} ended with ${exitCode}:\n${stdout}${stderr}`);
  return stdout + stderr;
}
