import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { loadCore, pinned } from "../cores.ts";

/** A tool that is not done this long after its load should have ended is stopped, in s. */
const graceS = 30;

/** Whether a load generator is installed. */
export function hasTool(name: string): boolean {
  return spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** Runs a load generator on the load's core and returns what it printed. Rejects when it fails or does not end. */
export function runTool(command: readonly [string, ...string[]], durationS: number): Promise<string> {
  return runAnywhere(pinned(loadCore, command), durationS);
}

/** The same on whatever core, for a load that is in nobody's way. */
export async function runAnywhere(command: readonly [string, ...string[]], durationS: number): Promise<string> {
  const [file, ...args] = command;
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"], timeout: (durationS + graceS) * 1_000 });
  const [output] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (child.exitCode !== 0)
    throw new Error(`${command[0]} ended with ${String(child.exitCode ?? child.signalCode)}: ${output}`);
  return output;
}

/** Lends a folder for a tool's script, body and log. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "plantstore-bench-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The number that the pattern's first group captures. Throws when the output has none. */
export function numberIn(output: string, pattern: RegExp): number {
  const found = pattern.exec(output)?.[1];
  if (found === undefined) throw new Error(`no ${String(pattern)} in: ${output}`);
  return Number(found);
}

/** A time as wrk and h2load print it, a number and a unit in the pattern's two groups, in seconds. */
export function secondsIn(output: string, pattern: RegExp): number {
  const factor = { us: 1e-6, ms: 1e-3, s: 1, m: 60 }[pattern.exec(output)?.[2] ?? "s"] ?? Number.NaN;
  return numberIn(output, pattern) * factor;
}
