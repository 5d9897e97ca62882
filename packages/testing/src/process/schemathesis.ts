import { join } from "node:path";
import { expect } from "vitest";
import { testSeed } from "../test-seed.ts";
import { buildStep } from "./build-step.ts";
import { projectFolder } from "./child-program.ts";
import { openPython } from "./python.ts";
import { toolsFolder } from "./tools-folder.ts";

/** Installs schemathesis, and returns the folder of its programs. */
export function openSchemathesis(): Promise<string> {
  return openPython(join(projectFolder, "test/suites/openapi/requirements.txt"));
}

/**
 * Sends requests that a description allows, or does not, and returns how many passed all checks.
 *
 * @param programs - the folder that {@link openSchemathesis} returned
 */
export async function fuzz(
  programs: string,
  file: string,
  url: string,
  options: Readonly<Record<string, string>>,
): Promise<number> {
  const flags = Object.entries({ url, seed: String(testSeed), "generation-database": "none", ...options }).flatMap(
    ([name, value]) => [`--${name}`, value],
  );
  const args = ["run", file, "--generation-unique-inputs", ...flags];
  const output = await buildStep(join(programs, "schemathesis"), args, {
    // It writes a folder to its working directory.
    folder: toolsFolder("schemathesis"),
  });
  const [, generated, passed] = /(\d+) generated, (\d+) passed/.exec(output) ?? [];
  expect(passed).toBe(generated);
  return Number(passed);
}
