import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { promisify } from "node:util";
import { messageOf } from "@plantstore/http";
import { InputError } from "./input-error.ts";
import { definitionMaxBytes } from "./read-definition.ts";
import { type ReadServices, readServices, servicesOf } from "./read-services.ts";

const run = promisify(execFile);

/**
 * Reads an older definition's services: a descriptor set, or a revision of the current folder's git repository, which
 * `buf build` compiles.
 *
 * @throws InputError if it is neither, or if git or buf fails
 */
export async function readAgainst(name: string, labels: readonly string[] | undefined): Promise<ReadServices> {
  // A folder can have a branch's name.
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory() === false) return await readServices(name, labels);
  return servicesOf(name, await buildRevision(name), labels);
}

async function buildRevision(revision: string): Promise<Uint8Array> {
  const hint = `--against must be a descriptor set or a git revision, got "${revision}"`;
  const commit = await runText("git", ["rev-parse", "--verify", "--end-of-options", `${revision}^{commit}`], hint);
  const folder = await runText("git", ["rev-parse", "--path-format=absolute", "--git-common-dir"], hint);
  const subfolder = await runText("git", ["rev-parse", "--show-prefix"], hint);
  const input = `${folder}#format=git,ref=${commit}${subfolder === "" ? "" : `,subdir=${subfolder}`}`;
  return await runProgram("buf", ["build", input, "-o", "-"], `cannot build the definition of ${revision} with buf`);
}

async function runText(program: string, args: readonly string[], problem: string): Promise<string> {
  return (await runProgram(program, args, problem)).toString().trim();
}

/** Runs a program, and returns its output. @throws InputError that starts with `problem` */
async function runProgram(program: string, args: readonly string[], problem: string): Promise<Buffer> {
  try {
    const { stdout } = await run(program, args, { encoding: "buffer", maxBuffer: definitionMaxBytes });
    return stdout;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const stderr = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    const reason = isMissing ? `the program "${program}" is not installed` : stderr || messageOf(error);
    throw new InputError(`${problem}: ${reason}`);
  }
}
