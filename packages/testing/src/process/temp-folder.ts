import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of a test's own, gone with everything in it when it is disposed of. */
export interface TempFolder {
  readonly path: string;
  /** The path of a file in it. */
  file(name: string): string;
  /** The paths in it that this process has open, on Linux. */
  open(): readonly string[];
  [Symbol.dispose](): void;
}

/** Makes an empty folder. Dispose of it with `using`. */
export function createTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "gateway-test-"));
  return {
    path,
    file: (name) => join(path, name),
    open: () => openFiles().filter((each) => each.startsWith(path)),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

function openFiles(): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      // The folder that is being listed, or a file that was closed meanwhile.
      return [];
    }
  });
}
