import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PlantedFault } from "./planted-fault.ts";

/** Returns the faults that the compiler refuses. Types are looked at only once the syntax of all files is right. */
export async function refusedFaults(folder: string, faults: readonly PlantedFault[]): Promise<Set<PlantedFault>> {
  // Without any file the compiler fails, too.
  if (faults.length === 0) return new Set();
  const refused = await refusedTogether(folder, faults);
  if (refused.size === 0) return refused;
  const others = faults.filter((fault) => !refused.has(fault));
  return new Set([...refused, ...(await refusedFaults(folder, others))]);
}

/**
 * Returns what one run of the compiler refuses. Each fault is written to a file of its own beside the original, so that
 * one run checks thousands of them.
 */
async function refusedTogether(folder: string, faults: readonly PlantedFault[]): Promise<Set<PlantedFault>> {
  const faulty = new Map(faults.map((fault, at) => [fault.file.replace(/\.ts$/, `.fault-${at}.ts`), fault]));
  // Even a copy of the original may be refused, because it passes its own types to files that import the original.
  // Errors that the faultless copies have too do not count.
  const sound = new Map(faults.map(({ file }) => [file.replace(/\.ts$/, ".fault-none.ts"), file]));
  for (const [path, { faulty: text }] of faulty) writeFileSync(join(folder, path), text);
  for (const [path, file] of sound) writeFileSync(join(folder, path), readFileSync(join(folder, file)));
  const settings = { extends: "./tsconfig.json", include: ["src/**/*.fault-*.ts", "packages/*/src/**/*.fault-*.ts"] };
  writeFileSync(join(folder, "tsconfig.faults.json"), JSON.stringify(settings));
  const place = { cwd: folder, maxBuffer: 2 ** 28 };
  const printed = await new Promise<string>((resolve, reject) =>
    execFile("node_modules/.bin/tsc", ["-p", "tsconfig.faults.json"], place, (failure, stdout, stderr) => {
      // It fails also if it finds errors, which it prints to standard output. One that crashes has not seen all faults.
      if (failure === null || (stdout !== "" && stderr === "")) resolve(stdout);
      else reject(failure);
    }),
  );
  const errors = [...printed.matchAll(/^(\S+)\([\d,]+\): (.*)$/gm)];
  const known = new Set(errors.filter(([, path = ""]) => sound.has(path)).map(([, , error]) => error));
  for (const path of [...faulty.keys(), ...sound.keys()]) rmSync(join(folder, path));
  const refused = errors.filter(([, , error]) => !known.has(error)).map(([, path = ""]) => faulty.get(path));
  return new Set(refused.filter((fault) => fault !== undefined));
}
