import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A checkout of another commit, which is removed when it is disposed of. */
export interface Revision {
  /** The commit's short hash. */
  readonly name: string;
  readonly folder: string;
  [Symbol.dispose](): void;
}

const project = join(import.meta.dirname, "../..");

/** Checks a commit out to a temporary folder. The checkout uses the packages that are installed in this checkout. */
export function checkOut(revision: string): Revision {
  const name = git("rev-parse", "--short", `${revision}^{commit}`);
  const folder = join(mkdtempSync(join(tmpdir(), "protoport-bench-")), name);
  git("worktree", "add", "--detach", folder, name);
  linkPackages(join(project, "node_modules"), folder);
  return {
    name,
    folder,
    [Symbol.dispose]: () => {
      git("worktree", "remove", "--force", folder);
      rmSync(join(folder, ".."), { recursive: true, force: true });
    },
  };
}

/** Links the installed packages, and the project's packages to the checkout's sources. */
function linkPackages(installed: string, checkout: string): void {
  const to = join(checkout, "node_modules");
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(installed)) {
    if (name !== "@protoport") symlinkSync(join(installed, name), join(to, name));
  }
  for (const folder of packagesOf(checkout)) {
    const { name }: { name: string } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    mkdirSync(dirname(join(to, name)), { recursive: true });
    symlinkSync(folder, join(to, name));
  }
}

/** Returns the folders of a checkout's packages. Before protoport/ existed, packages were in packages/. */
function packagesOf(checkout: string): string[] {
  const packages = globSync(join(checkout, "protoport/*/package.json"));
  return (packages.length > 0 ? packages : globSync(join(checkout, "packages/*/package.json"))).map((file) =>
    dirname(file),
  );
}

function git(...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: project, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}
