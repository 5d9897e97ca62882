import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename } from "node:path";

/** What is recorded of the work on files, in order, such as "sync copy.db". Dispose of it with `using`. */
export interface FileSteps extends Disposable {
  readonly steps: readonly string[];
}

/** Records which files and folders are synced, linked and renamed, by their names, while it is not disposed of. */
export function recordFileSteps(): FileSteps {
  const steps: string[] = [];
  const paths = new Map<number, string>();
  const { openSync, fsyncSync, linkSync } = fs;
  fs.openSync = (path, ...more) => {
    const descriptor = openSync(path, ...more);
    paths.set(descriptor, String(path));
    return descriptor;
  };
  fs.fsyncSync = (descriptor) => {
    steps.push(`sync ${basename(paths.get(descriptor) ?? "")}`);
    fsyncSync(descriptor);
  };
  fs.linkSync = (from, to) => {
    steps.push(`link ${basename(String(from))} ${basename(String(to))}`);
    linkSync(from, to);
  };
  syncBuiltinESMExports();
  return {
    steps,
    [Symbol.dispose]: () => {
      Object.assign(fs, { openSync, fsyncSync, linkSync });
      syncBuiltinESMExports();
    },
  };
}
