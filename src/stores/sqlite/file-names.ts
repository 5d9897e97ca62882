import { readFileSync, realpathSync, statSync } from "node:fs";
import { parse, resolve } from "node:path";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { elapsedMsSince, type OnUpkeep } from "../contract/upkeep.ts";
import { mountPointOf } from "./mount-points.ts";

/**
 * Returns the problem if an existing file may have a second name, otherwise `undefined`. SQLite names the log after the
 * name by which it opened the file. With two names, two servers with separate logs could delete the same plants, and a
 * restart with the other name would restore deleted plants.
 *
 * Symbolic links are allowed, because SQLite resolves links. All names of a folder lead to the same log. The file is
 * not opened, because closing it would release this process's locks. Device numbers are not compared, because overlay
 * file systems report different numbers for files in one folder.
 */
export function secondNameOf(path: string): string | undefined {
  const realPath = realpathSync(path);
  const mountPoint = mountPointOf(readMountInfo(), realPath);
  if (mountPoint === realPath) {
    return (
      "the file itself is a mount point, so its write-ahead log is not on the mounted volume: " +
      "mount the folder, not the file (in Kubernetes, no subPath that is a file)"
    );
  }
  const { nlink, ino } = statSync(realPath, { bigint: true });
  if (nlink <= 1n) return undefined;
  const folder = process.platform === "linux" ? mountPoint : parse(realPath).root;
  return (
    `the file has ${nlink} names (hard links), each with its own write-ahead log: ` +
    `find them with "find ${folder} -xdev -inum ${ino}", remove the others, then start; ` +
    "keep the name by which the server ran last, never the name of a backup, which may have an old -wal"
  );
}

/** @throws StoreOpenError with the problem of {@link secondNameOf}, without the path */
export function assertSingleName(path: string): void {
  const problem = secondNameOf(path);
  if (problem !== undefined) throw new StoreOpenError(problem);
}

/** Returns a function that checks whether an open file has a second name. Reports when the name appears or is gone. */
export function prepareNameCheck(file: string, onUpkeep: OnUpkeep): () => boolean {
  const path = resolve(file);
  let foundMs: number | undefined;
  return () => {
    const problem = secondNameIfExists(path);
    if (problem !== undefined && foundMs === undefined) {
      foundMs = performance.now();
      onUpkeep({ kind: "second-name-found", problem });
    } else if (problem === undefined && foundMs !== undefined) {
      onUpkeep({ kind: "second-name-gone", lastedMs: elapsedMsSince(foundMs) });
      foundMs = undefined;
    }
    return problem !== undefined;
  };
}

function secondNameIfExists(path: string): string | undefined {
  try {
    return secondNameOf(path);
  } catch {
    // Ignores a file that was moved or deleted, because the store reports that problem.
    return undefined;
  }
}

/** Returns the mounts of this process. Returns an empty string on systems where a file cannot be a mount point. */
function readMountInfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}
