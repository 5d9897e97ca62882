import { readFileSync, realpathSync, statSync } from "node:fs";
import { parse, resolve } from "node:path";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { elapsedMsSince, type OnUpkeep } from "../contract/upkeep.ts";
import { mountPointOf } from "./mount-points.ts";

const mountInfoPath = "/proc/self/mountinfo";

/**
 * Returns the problem with an existing file that may have a second name, and `undefined` if it has only one. SQLite
 * puts the log next to the name by which it opened the file. Under a second name there is another log, so that two
 * servers delete the same plants, and a restart under the other name restores deleted plants.
 *
 * Symbolic links are allowed, because SQLite resolves them. A folder may have several names, because all lead to the
 * same log. The file is not opened. Closing it would release the locks that this process holds on it. Devices are not
 * compared, because overlay file systems report different ones for one folder's files.
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

/**
 * Checks that an existing file has only one name, see {@link secondNameOf}.
 *
 * @throws StoreOpenError with the problem, without the path
 */
export function assertSingleName(path: string): void {
  const problem = secondNameOf(path);
  if (problem !== undefined) throw new StoreOpenError(problem);
}

/** Reports when an open file gets a second name, and when that is gone. */
export class FileNames {
  readonly #path: string;
  readonly #onUpkeep: OnUpkeep;
  /** When a second name was found, on the `performance.now()` clock, or `undefined` without a second name. */
  #foundMs: number | undefined;

  constructor(path: string, onUpkeep: OnUpkeep) {
    this.#path = resolve(path);
    this.#onUpkeep = onUpkeep;
  }

  /** Checks the file's names, and returns whether there is a second one. */
  check(): boolean {
    const problem = this.#findProblem();
    if (problem !== undefined && this.#foundMs === undefined) {
      this.#foundMs = performance.now();
      this.#onUpkeep({ kind: "second-name-found", problem });
    } else if (problem === undefined && this.#foundMs !== undefined) {
      this.#onUpkeep({ kind: "second-name-gone", lastedMs: elapsedMsSince(this.#foundMs) });
      this.#foundMs = undefined;
    }
    return this.#foundMs !== undefined;
  }

  #findProblem(): string | undefined {
    try {
      return secondNameOf(this.#path);
    } catch {
      // The file was moved or deleted, which is the store's problem.
      return undefined;
    }
  }
}

/** Returns this process's mounts. Empty on systems without this file, where a file cannot be a mount point. */
function readMountInfo(): string {
  try {
    return readFileSync(mountInfoPath, "utf8");
  } catch {
    return "";
  }
}
