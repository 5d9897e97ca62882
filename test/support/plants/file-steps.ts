import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename } from "node:path";

/** The recorded file operations, in order, such as "sync copy.db". Dispose it with `using`. */
export type FileSteps = Disposable & { readonly steps: readonly string[] };

/** Records which files and folders are synced, linked, renamed and removed. `onStep` is called before each. */
export function recordFileSteps(onStep: (step: string) => void = () => undefined): FileSteps {
  const steps: string[] = [];
  const paths = new Map<number, string>();
  const { openSync, fsyncSync, linkSync, renameSync, rmSync } = fs;
  const record = (step: string): void => {
    onStep(step);
    steps.push(step);
  };
  fs.openSync = (path, ...more) => {
    const descriptor = openSync(path, ...more);
    paths.set(descriptor, String(path));
    return descriptor;
  };
  fs.fsyncSync = (descriptor) => {
    record(`sync ${basename(paths.get(descriptor) ?? "")}`);
    fsyncSync(descriptor);
  };
  fs.linkSync = (from, to) => {
    record(`link ${basename(String(from))} ${basename(String(to))}`);
    linkSync(from, to);
  };
  fs.renameSync = (from, to) => {
    record(`rename ${basename(String(from))} ${basename(String(to))}`);
    renameSync(from, to);
  };
  fs.rmSync = (path, options) => {
    if (fs.existsSync(path)) record(`remove ${basename(String(path))}`);
    rmSync(path, options);
  };
  syncBuiltinESMExports();
  return {
    steps,
    [Symbol.dispose]: () => {
      Object.assign(fs, { openSync, fsyncSync, linkSync, renameSync, rmSync });
      syncBuiltinESMExports();
    },
  };
}

/** Returns the name under which the first step syncs the copy, which is different in each run. */
export const unfinishedNameIn = (steps: readonly string[]): string =>
  /^sync (.+\.unfinished)$/.exec(steps[0] ?? "")?.[1] ?? "no unfinished copy";
