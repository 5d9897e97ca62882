import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { loadCore, pinned } from "../cores.ts";

/** Seconds after the end of a load until a tool that is still running is stopped. */
const graceS = 30;

/** Returns whether a load generator is installed. */
export function hasTool(name: string): boolean {
  return spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined;
}

/**
 * Runs a load generator on the load's core, and returns its output. Rejects if the load generator fails or times out.
 */
export function runTool(command: readonly [string, ...string[]], durationS: number): Promise<string> {
  return runAnywhere(pinned(loadCore, command), durationS);
}

/** Runs a load generator without pinning it to a core. */
export async function runAnywhere(command: readonly [string, ...string[]], durationS: number): Promise<string> {
  const [file, ...args] = command;
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"], timeout: (durationS + graceS) * 1_000 });
  const [output] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (child.exitCode !== 0)
    throw new Error(`${command[0]} exited with ${String(child.exitCode ?? child.signalCode)}: ${output}`);
  return output;
}

/** Passes a temporary folder for a tool's script, body and log. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "protoport-bench-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the number that a pattern's first group matches in an output. Throws if the output does not match. */
export function numberIn(output: string, pattern: RegExp): number {
  const found = pattern.exec(output)?.[1];
  if (found === undefined) throw new Error(`no ${String(pattern)} in: ${output}`);
  return Number(found);
}

/**
 * Parses a time in the output of wrk or h2load, and returns seconds. The pattern's two groups match the number and the
 * unit.
 */
export function secondsIn(output: string, pattern: RegExp): number {
  const factor = { us: 1e-6, ms: 1e-3, s: 1, m: 60 }[pattern.exec(output)?.[2] ?? "s"] ?? Number.NaN;
  return numberIn(output, pattern) * factor;
}
