import { cpSync, globSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { projectFolder } from "../process/child-program.ts";
import { buildStep } from "../process/build-step.ts";

/** What an image would be. */
export interface BuiltImage {
  /** The working folder of its last stage. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** `ENTRYPOINT` and `CMD`. */
  readonly command: readonly string[];
}

interface Stage {
  readonly root: string;
  folder: string;
  readonly environment: Record<string, string>;
  command: string[];
}

/**
 * Carries out the steps of a Dockerfile without a container: each stage is a folder below `target`, its commands run
 * here, and it is given only the files that its .dockerignore lets pass. Knows the instructions that ours has.
 */
export async function buildImage(dockerfile: string, target: string): Promise<BuiltImage> {
  const context = join(target, "context");
  copyContext(`${dockerfile}.dockerignore`, context);
  const stages = new Map<string, Stage>();
  let stage = newStage(join(target, "none"));
  const steps: Readonly<Record<string, (rest: string) => void | Promise<unknown>>> = {
    FROM: (rest) => {
      const [image = "", , name = "last"] = rest.split(" ");
      stage = newStage(join(target, name), stages.get(image));
      stages.set(name, stage);
    },
    WORKDIR: (path) => {
      stage.folder = join(stage.root, path);
      mkdirSync(stage.folder, { recursive: true });
    },
    ENV: (rest) =>
      void Object.assign(stage.environment, Object.fromEntries(rest.split(" ").map((one) => one.split("=")))),
    COPY: (rest) => {
      const [from = "", ...others] = rest.split(" ");
      const source = /^--from=(.+)$/.exec(from)?.[1];
      const paths = source === undefined ? [from, ...others] : others;
      copy(stages.get(source ?? "")?.root ?? context, paths.slice(0, -1), join(stage.folder, paths.at(-1) ?? ""));
    },
    RUN: (command) => buildStep("bash", ["-c", command], { folder: stage.folder }),
    ENTRYPOINT: (list) => void stage.command.unshift(...JSON.parse(list)),
    CMD: (list) => void stage.command.push(...JSON.parse(list)),
    USER: () => undefined,
    EXPOSE: () => undefined,
  };
  for (const line of linesOf(dockerfile)) {
    const [, name = "", rest = ""] = /^(\S+) (.*)$/.exec(line) ?? [];
    const step = steps[name];
    if (step === undefined) throw new Error(`what does this do? ${line}`);
    await step(rest);
  }
  return stage;
}

function linesOf(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
}

/** Our list ignores everything, and then names what is let pass, and what of that is not. */
function copyContext(ignored: string, context: string): void {
  const patterns = linesOf(ignored);
  const passed = patterns.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
  for (const name of globSync(passed, { cwd: projectFolder })) {
    cpSync(join(projectFolder, name), join(context, name), { recursive: true, filter: isNoPackage });
  }
}

function isNoPackage(path: string): boolean {
  return basename(path) !== "node_modules";
}

function newStage(root: string, base?: Stage): Stage {
  if (base === undefined) mkdirSync(root, { recursive: true });
  else cpSync(base.root, root, { recursive: true, verbatimSymlinks: true });
  return {
    root,
    folder: join(root, base?.folder.slice(base.root.length) ?? ""),
    environment: { ...base?.environment },
    command: [...(base?.command ?? [])],
  };
}

// A folder is copied with what is in it, a file into a folder (Dockerfile reference, COPY).
function copy(root: string, sources: readonly string[], target: string): void {
  for (const source of sources) {
    const from = join(root, source);
    const to = statSync(from).isDirectory() ? target : join(target, basename(source));
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  }
}
