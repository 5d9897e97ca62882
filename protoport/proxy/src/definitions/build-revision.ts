import { execFile, type ExecFileOptions } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { messageOf } from "@protoport/gateway/errors";
import { definitionMaxBytes } from "./definition.ts";
import { InputError } from "./input-error.ts";

const run = promisify(execFile);

/**
 * Compiles a git revision of the current folder with `buf build`. The build uses the current `node_modules` folders,
 * because modules in `buf.yaml` may be npm packages.
 *
 * @throws InputError if git or buf fails
 */
export async function buildRevision(revision: string): Promise<Uint8Array> {
  return await untilSignal(async (signal) => {
    const hint = `--against must be a descriptor set or a git revision, got "${revision}"`;
    const revParse = async (...args: readonly string[]): Promise<string> =>
      (await runProgram("git", ["rev-parse", ...args], hint, { signal })).toString().trim();
    const commit = await revParse("--verify", "--end-of-options", `${revision}^{commit}`);
    const repository = await revParse("--path-format=absolute", "--git-common-dir");
    const subfolders = (await revParse("--show-prefix")).split("/").filter((name) => name !== "");
    const problem = `cannot build the definition of ${revision} with buf`;
    const temporary = mkdtempSync(join(tmpdir(), "check-against-"));
    try {
      const tree = join(temporary, "tree");
      mkdirSync(tree);
      const args = ["--git-dir", repository, "--work-tree", tree, "read-tree", "--reset", "-u", commit];
      // A separate git index leaves the repository's index unchanged.
      const env = { ...process.env, GIT_INDEX_FILE: join(temporary, "index") };
      await runProgram("git", args, `cannot read ${revision}`, { cwd: tree, env, signal });
      const folder = join(tree, ...subfolders);
      if (!existsSync(folder)) throw new InputError(`${problem}: it has no folder ${subfolders.join("/")}`);
      linkPackages(tree, subfolders);
      return await runProgram("buf", ["build", "-o", "-"], problem, { cwd: folder, signal });
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  });
}

/** Creates links to the `node_modules` folders of the current folder and its parents up to the repository's root. */
function linkPackages(tree: string, subfolders: readonly string[]): void {
  for (let depth = 0; depth <= subfolders.length; depth++) {
    const parents = Array.from({ length: subfolders.length - depth }, () => "..");
    const installed = resolve(...parents, "node_modules");
    const link = join(tree, ...subfolders.slice(0, depth), "node_modules");
    // Windows lets every user create a junction.
    if (existsSync(installed) && !existsSync(link)) symlinkSync(installed, link, "junction");
  }
}

const endingSignals = ["SIGHUP", "SIGINT", "SIGTERM"] as const;

/** Runs an action. A signal aborts the action, and stops the process after the action has removed its files. */
async function untilSignal<Result>(action: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const stopping = new AbortController();
  let received: NodeJS.Signals | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    received = signal;
    stopping.abort();
  };
  for (const signal of endingSignals) process.on(signal, stop);
  try {
    return await action(stopping.signal);
  } finally {
    for (const signal of endingSignals) process.off(signal, stop);
    if (received !== undefined) process.kill(process.pid, received);
  }
}

/** Runs a program, and returns its output. @throws InputError that starts with `problem` */
async function runProgram(
  program: string,
  args: readonly string[],
  problem: string,
  options: ExecFileOptions,
): Promise<Buffer> {
  try {
    const { stdout } = await run(program, args, { ...options, encoding: "buffer", maxBuffer: definitionMaxBytes });
    return stdout;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const stderr = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    const reason = isMissing ? `the program "${program}" is not installed` : stderr || messageOf(error);
    throw new InputError(`${problem}: ${reason}`);
  }
}
