import { mkdtempSync, readdirSync, readlinkSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A temporary folder, which is deleted when it is disposed of. */
export interface TempFolder {
  readonly path: string;
  file(name: string): string;
  write(this: void, name: string, content: string | Uint8Array): string;
  /** Returns the paths in the folder that this process has open. The function works only on Linux. */
  open(): readonly string[];
  [Symbol.dispose](): void;
}

export function createTempFolder(): TempFolder {
  // The system lists open files without symbolic links.
  const path = realpathSync(mkdtempSync(join(tmpdir(), "gateway-test-")));
  const file = (name: string): string => join(path, name);
  return {
    path,
    file,
    write: (name, content) => {
      writeFileSync(file(name), content);
      return file(name);
    },
    open: () => openFiles().filter((each) => each.startsWith(path)),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

function openFiles(): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      // The descriptor was for listing the folder, or its file was closed in the meantime.
      return [];
    }
  });
}
