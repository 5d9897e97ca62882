import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { projectFolder } from "../../../testing/src/process/child-program.ts";

/** A user's project: a folder with installed packages and programs. */
export interface UserProject {
  readonly path: string;
  write(name: string, text: string): void;
  /** Runs a command, and returns its output. Throws with its output when it fails. */
  run(file: string, ...args: readonly string[]): string;
  /** Runs a command that may fail, and returns its output. */
  tryToRun(file: string, ...args: readonly string[]): string;
  runProgram(text: string): string;
}

export type Tarballs = ReturnType<typeof tarballsIn>;
export type PackageName = keyof Tarballs;
/** Returns the tarballs that this suite's script has packed. */
export const packed = (): Tarballs => tarballsIn(join(projectFolder, "dist"));

/** Returns the path of the tarball that a folder has for a package. */
export function tarballOf(name: string, folder: string = join(projectFolder, "dist")): string {
  const files = readdirSync(folder);
  return join(folder, files.find((file) => file.startsWith(name) && /^-\d/.test(file.slice(name.length))) ?? "");
}

export function tarballsIn(folder: string): Readonly<Record<`@protoport/${LibraryName}`, string>> {
  const tarball = (name: string): string => tarballOf(name, folder);
  // oxfmt-ignore
  return {
    "@protoport/gateway": tarball("protoport-gateway"), "@protoport/command-line": tarball("protoport-command-line"),
    "@protoport/docs-page": tarball("protoport-docs-page"), "@protoport/rest-client": tarball("protoport-rest-client"),
    "@protoport/auth": tarball("protoport-auth"), "@protoport/telemetry": tarball("protoport-telemetry"),
    "@protoport/frameworks": tarball("protoport-frameworks"),
    "@protoport/grpc-handlers": tarball("protoport-grpc-handlers"), "@protoport/proxy": tarball("protoport-proxy"),
  };
}

type LibraryName =
  | "gateway"
  | "command-line"
  | "docs-page"
  | "rest-client"
  | "auth"
  | "telemetry"
  | "frameworks"
  | "grpc-handlers"
  | "proxy";

/** buf's package, which pages run with npx, in this repository's version. */
export const buf: string = `@bufbuild/buf@${JSON.parse(readFileSync(join(projectFolder, "package.json"), "utf8")).devDependencies["@bufbuild/buf"]}`;

export function createUserProject(dependencies: Readonly<Record<string, string>> = {}): UserProject {
  const path = mkdtempSync(join(tmpdir(), "user-"));
  const write = (name: string, text: string): void => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  };
  // Removes the variables that vitest sets for its processes. npm asks the registry only for what its cache lacks.
  const cleared = { NODE_OPTIONS: "", NODE_ENV: "" };
  const environment = { ...process.env, ...cleared, NO_COLOR: "1", npm_config_prefer_offline: "true" };
  const run = (file: string, ...args: readonly string[]): string =>
    execFileSync(file, args, { cwd: path, env: environment, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  write("package.json", JSON.stringify({ name: "user", private: true, type: "module", dependencies }));
  return {
    path,
    write,
    run,
    tryToRun(file, ...args) {
      const { stdout, stderr } = spawnSync(file, args, { cwd: path, env: environment, encoding: "utf8" });
      return stdout + stderr;
    },
    runProgram(text) {
      write("program.mjs", text);
      return run(process.execPath, "program.mjs");
    },
  };
}

export function installedPackages({ path }: UserProject): string[] {
  const files = readdirSync(join(path, "node_modules"), { recursive: true, encoding: "utf8" });
  const manifests = files.filter((name) => /(?:^|node_modules\/)(?:@[^/.]+\/)?[^/@.][^/]*\/package\.json$/.test(name));
  const nameOf = (name: string): string => JSON.parse(readFileSync(join(path, "node_modules", name), "utf8")).name;
  const names = manifests.map(nameOf);
  return names.toSorted();
}
