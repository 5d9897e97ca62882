import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of a test's own, gone with everything in it when it is disposed of. */
export interface TempFolder {
  readonly path: string;
  /** The path of a file in it. */
  file(name: string): string;
  [Symbol.dispose](): void;
}

/** Makes an empty folder. Dispose of it with `using`. */
export function createTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "plantstore-test-"));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
