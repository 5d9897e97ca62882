import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutant.ts";

/** Returns the mutants that do not compile. The compiler checks types only once no file has a syntax error. */
export async function rejectedMutants(folder: string, mutants: readonly Mutant[]): Promise<Set<Mutant>> {
  // Without mutants, the compiler is not run, because it fails without files.
  if (mutants.length === 0) return new Set();
  const rejected = await rejectedInOneRun(folder, mutants);
  if (rejected.size === 0) return rejected;
  const others = mutants.filter((mutant) => !rejected.has(mutant));
  return new Set([...rejected, ...(await rejectedMutants(folder, others))]);
}

/**
 * Returns the mutants that a compiler run rejects. Each mutant is written to a separate file next to the original, so
 * that a single run checks thousands of mutants.
 */
async function rejectedInOneRun(folder: string, mutants: readonly Mutant[]): Promise<Set<Mutant>> {
  const mutated = new Map(mutants.map((mutant, at) => [mutant.file.replace(/\.ts$/, `.mutant-${at}.ts`), mutant]));
  // An unchanged copy may also be rejected, because the copy passes its own types to files that import the original.
  // Errors that the unchanged copies have too do not count.
  const unchanged = new Map(mutants.map(({ file }) => [file.replace(/\.ts$/, ".mutant-none.ts"), file]));
  for (const [path, { source }] of mutated) writeFileSync(join(folder, path), source);
  for (const [path, file] of unchanged) writeFileSync(join(folder, path), readFileSync(join(folder, file)));
  const include = ["src/**/*.mutant-*.ts", "protoport/*/src/**/*.mutant-*.ts"];
  writeFileSync(join(folder, "tsconfig.mutants.json"), JSON.stringify({ extends: "./tsconfig.json", include }));
  const options = { cwd: folder, maxBuffer: 2 ** 28 };
  const output = await new Promise<string>((resolve, reject) =>
    execFile("node_modules/.bin/tsc", ["-p", "tsconfig.mutants.json"], options, (failure, stdout, stderr) => {
      // The compiler also exits with an error if it has printed errors to standard output. Any other failure means that
      // the compiler has not checked all mutants.
      if (failure === null || (stdout !== "" && stderr === "")) resolve(stdout);
      else reject(failure);
    }),
  );
  const errors = [...output.matchAll(/^(\S+)\([\d,]+\): (.*)$/gm)];
  const known = new Set(errors.filter(([, path = ""]) => unchanged.has(path)).map(([, , error]) => error));
  for (const path of [...mutated.keys(), ...unchanged.keys()]) rmSync(join(folder, path));
  const rejected = errors.filter(([, , error]) => !known.has(error)).map(([, path = ""]) => mutated.get(path));
  return new Set(rejected.filter((mutant) => mutant !== undefined));
}
