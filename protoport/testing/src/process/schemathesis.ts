import { join } from "node:path";
import { expect } from "vitest";
import { testSeed } from "../test-seed.ts";
import { buildLimitMs } from "./build-step.ts";
import { projectFolder, runProgram } from "./child-program.ts";
import { openPython } from "./python.ts";
import { toolsFolder } from "./tools-folder.ts";

/** Installs schemathesis, and returns its programs' folder. */
export const openSchemathesis = (): Promise<string> =>
  openPython(join(projectFolder, "protoport/test/suites/openapi/requirements.txt"));

interface FuzzResult {
  readonly generated: number;
  /** The failed checks, as schemathesis prints them. */
  readonly failures: readonly string[];
}

/** Sends requests that an OpenAPI description allows, and others. @param programs - of {@link openSchemathesis} */
export async function fuzz(
  programs: string,
  file: string,
  url: string,
  options: Readonly<Record<string, string>>,
): Promise<FuzzResult> {
  const flags = Object.entries({ url, seed: String(testSeed), "generation-database": "none", ...options }).flatMap(
    ([name, value]) => [`--${name}`, value],
  );
  const args = ["run", file, "--generation-unique-inputs", "--continue-on-failure", ...flags];
  const program = join(programs, "schemathesis");
  // Schemathesis writes a folder to its working directory.
  const folder = toolsFolder("schemathesis");
  const { exitCode, stdout, stderr } = await runProgram(program, args, { limitMs: buildLimitMs, folder });
  // Exit code 1 means that a check failed.
  const [, generated] = /(\d+) generated/.exec(stdout) ?? [];
  if ((exitCode !== 0 && exitCode !== 1) || generated === undefined)
    throw new Error(`schemathesis exited with ${exitCode}:\n${stdout}${stderr}`);
  const failures = stdout.split(/\n(?=\d+\. Test Case ID: )/).slice(1);
  expect(failures.length > 0).toBe(exitCode === 1);
  return { generated: Number(generated), failures };
}
