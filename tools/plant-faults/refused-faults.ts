import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PlantedFault } from "./planted-fault.ts";

/** The tool that refuses a fault before it runs: the compiler, or the linter of promises. */
export type Refuser = "tsc" | "oxlint";

/** The most files with faults that one run of the compiler checks, which takes a gigabyte of memory. */
const filesAtOnce = 1000;

const promiseRules = ["no-floating-promises", "no-misused-promises", "await-thenable"];

/**
 * Returns the faults that the compiler or the linter refuses. Each is written to a file of its own beside the original,
 * so that one run checks hundreds of them.
 */
export async function refusalsOf(
  folder: string,
  faults: readonly PlantedFault[],
): Promise<ReadonlyMap<PlantedFault, Refuser>> {
  const refusals = new Map<PlantedFault, Refuser>();
  for (let at = 0; at < faults.length; at += filesAtOnce)
    await refuseSome(folder, faults.slice(at, at + filesAtOnce), refusals);
  return refusals;
}

async function refuseSome(
  folder: string,
  faults: readonly PlantedFault[],
  refusals: Map<PlantedFault, Refuser>,
): Promise<void> {
  const faulty = new Map(faults.map((fault, at) => [fault.file.replace(/\.ts$/, `.fault-${at}.ts`), fault]));
  // Even a faultless copy beside its original may be refused, because it passes its own types to files that import the
  // original. Errors that the faultless copies have too do not count.
  const sound = new Map(faults.map(({ file }) => [file.replace(/\.ts$/, ".fault-none.ts"), file]));
  for (const [path, { faulty: text }] of faulty) writeFileSync(join(folder, path), text);
  for (const [path, file] of sound) writeFileSync(join(folder, path), readFileSync(join(folder, file)));
  writeFileSync(
    join(folder, "tsconfig.faults.json"),
    JSON.stringify({ extends: "./tsconfig.json", include: ["src/**/*.fault-*.ts"] }),
  );
  const errors = [
    ...(await linesOf(folder, "tsc", ["-p", "tsconfig.faults.json"])).matchAll(/^(\S+)\([\d,]+\): (.*)$/gm),
  ];
  const known = new Set(errors.filter(([, path = ""]) => sound.has(path)).map(([, , error]) => error));
  for (const [, path = "", error] of errors) {
    const fault = faulty.get(path);
    if (fault !== undefined && !known.has(error)) refusals.set(fault, "tsc");
  }
  const rules = promiseRules.flatMap((rule) => ["-D", `typescript/${rule}`]);
  const compiled = [...faulty].filter(([, fault]) => !refusals.has(fault)).map(([path]) => path);
  const problems = await linesOf(folder, "oxlint", ["--type-aware", "-A", "all", ...rules, "-f", "unix", ...compiled]);
  for (const [, path = ""] of problems.matchAll(/^(\S+?):\d+:\d+: /gm)) {
    const fault = faulty.get(path);
    if (fault !== undefined) refusals.set(fault, "oxlint");
  }
  for (const path of [...faulty.keys(), ...sound.keys()]) rmSync(join(folder, path));
}

/** Returns what a command of the project's packages prints, even if it fails. */
async function linesOf(folder: string, command: string, args: readonly string[]): Promise<string> {
  const options = { cwd: folder, maxBuffer: 2 ** 28 };
  const printed = promisify(execFile)(join("node_modules/.bin", command), args, options);
  return await printed.then(
    ({ stdout }) => stdout,
    (error: { stdout?: string }) => error.stdout ?? "",
  );
}
