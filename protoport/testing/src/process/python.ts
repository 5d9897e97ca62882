import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildStep } from "./build-step.ts";
import { toolsFolder } from "./tools-folder.ts";

/** Returns the program folder of an environment, new or from an earlier run, with a requirements file's packages. */
export async function openPython(requirementsFile: string): Promise<string> {
  const requirements = readFileSync(requirementsFile);
  const key = createHash("sha256").update(requirements).digest("hex").slice(0, 16);
  const folder = toolsFolder(`python-${key}`);
  const programs = join(folder, "bin");
  // The file `ready` is written last, so that an incomplete environment is created again.
  const ready = join(folder, "ready");
  if (!existsSync(ready)) {
    await buildStep("python3", ["-m", "venv", "--clear", folder]);
    await buildStep(join(programs, "pip"), ["install", "--quiet", "--requirement", requirementsFile]);
    writeFileSync(ready, "");
  }
  return programs;
}

// Creates the environment before the test files that share it run concurrently.
if (import.meta.main) await openPython(process.argv[2] ?? "");
