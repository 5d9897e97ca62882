import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A checkout of another commit, gone when it is disposed of. */
export interface Revision {
  /** The short hash of the commit. */
  readonly name: string;
  readonly folder: string;
  [Symbol.dispose](): void;
}

const project = join(import.meta.dirname, "..");

/** Checks a commit out into a folder of its own. It runs on the packages that are installed here. */
export function checkOut(revision: string): Revision {
  const name = git("rev-parse", "--short", `${revision}^{commit}`);
  const folder = join(mkdtempSync(join(tmpdir(), "plantstore-bench-")), name);
  git("worktree", "add", "--detach", folder, name);
  linkPackages(join(project, "node_modules"), join(folder, "node_modules"));
  return {
    name,
    folder,
    [Symbol.dispose]: () => {
      git("worktree", "remove", "--force", folder);
      rmSync(join(folder, ".."), { recursive: true, force: true });
    },
  };
}

/** Links the packages that are installed here, but the project's own to the source of the checkout. */
function linkPackages(from: string, to: string): void {
  mkdirSync(join(to, "@plantstore"), { recursive: true });
  for (const name of readdirSync(from)) {
    if (name !== "@plantstore" && name !== "plantstore") symlinkSync(join(from, name), join(to, name));
  }
  for (const name of ["gateway", "operators"]) symlinkSync(`../../src/${name}`, join(to, "@plantstore", name));
}

function git(...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: project, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}
